"""Animations of the gallery as GIFs: the other ways to show one load a font from elsewhere."""

import matplotlib.pyplot as plt
from matplotlib.animation import Animation, PillowWriter
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper


def _get_sg_image_scraper():
    return scrape


def scrape(block, block_vars, gallery_conf):
    """Save the animations of a block, and then its other figures as they always are."""
    paths = []
    for each in block_vars["example_globals"].values():
        if isinstance(each, Animation) and plt.fignum_exists(each._fig.number):
            path = next(block_vars["image_path_iterator"]).removesuffix(".png") + ".gif"
            each.save(path, writer=PillowWriter(fps=1000 / each._interval), dpi=100)
            plt.close(each._fig)
            paths.append(path)
    rest = matplotlib_scraper(block, block_vars, gallery_conf)
    return figure_rst(paths, gallery_conf["src_dir"]) + rest
