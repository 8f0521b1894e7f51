"""Refuses the network to every Python that the tests start: each imports this before anything else.

Dask's and joblib's workers talk to each other on this machine, so loopback and Unix sockets stay.
The tests of packaging leave this folder out of PYTHONPATH where pip asks the package registry.
"""

import functools
import socket
import sys

LOOK_UPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
CALLS = {"socket.connect", "socket.sendto", "socket.sendmsg"}


class NetworkRefusedError(RuntimeError):
    """Not an OSError: code that copes with a missing network must not hide that it was asked."""


def check(host):
    host = host.decode() if isinstance(host, bytes) else host
    # No host at all: a server's own address, or a socket that is connected already.
    if host and host not in ("localhost", "::1") and not host.startswith("127."):
        raise NetworkRefusedError(
            f"A test tried to reach {host}. Tests never touch the network: make the data up, or "
            "mark the test with pytest.mark.data, which skips it where the real data are not."
        )


def check_address(sock, address):
    if sock.family in (socket.AF_INET, socket.AF_INET6) and address:
        check(address[0])


def hook(event, arguments):
    if event in LOOK_UPS:
        check(arguments[0])
    elif event in CALLS:
        check_address(*arguments)


def before_look_up(call):
    """Check the address, which comes last: the hook hears of it once its name is looked up."""

    @functools.wraps(call)
    def checked(sock, *arguments):
        check_address(sock, arguments[-1])
        return call(sock, *arguments)

    return checked


sys.addaudithook(hook)
for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, before_look_up(getattr(socket.socket, name)))
