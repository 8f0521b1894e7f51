"""What is used of Dask, or a sentence that says how to get it."""

try:
    import dask
    from dask import delayed
    from dask.base import is_dask_collection
    from dask.delayed import Delayed
    from distributed import Client, Future, get_client
except ImportError as error:
    raise ImportError(
        "parsimon.dask needs Dask and its distributed scheduler, which are not installed; install "
        "them with: pip install 'parsimon[dask]'."
    ) from error

__all__ = ["Client", "Delayed", "Future", "dask", "delayed", "get_client", "is_dask_collection"]
