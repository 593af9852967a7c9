"""Heat maps of one colour: readable on white and on black."""
import matplotlib.colors
import numpy as np

from hearsay_analysis.drawing import style


def shade(axes, fractions, extent):
    """Draws an array of fractions in [0, 1] as opacity. extent: left, right, bottom, top."""
    image = np.empty((*fractions.shape, 4))
    image[..., :3] = matplotlib.colors.to_rgb(style.colour(0))
    image[..., 3] = np.clip(np.nan_to_num(fractions), 0, 1)
    axes.imshow(image, extent=extent, aspect="auto", interpolation="nearest")
