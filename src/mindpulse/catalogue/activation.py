"""Measures of what flows between the operators: inputs of normalisations, insides of an FFN.

`x` has shape (..., features); a token is one vector of features. Where there is no element the
result is NaN; a NaN or an infinity in `x` is never dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.catalogue.histogram import BINS, HISTOGRAM_EDGES, HISTOGRAM_LABELS, histogram
from mindpulse.catalogue.measure import Measure

__all__ = ["BINS", "HISTOGRAM_EDGES", "HISTOGRAM_LABELS", "MEASURES", "histogram"]


def input_mean(x: ArrayLike) -> float:
    """Mean of all elements: of the means that a LayerNorm takes away, the mean over tokens.

    Example:
        >>> input_mean([[1.0, 3.0], [2.0, 2.0]])
        2.0
    """
    return _mean(np.asarray(x, np.float64))


def input_variance(x: ArrayLike) -> float:
    """Mean over tokens of the variance over features (divided by their number).

    Example:
        >>> input_variance([[1.0, 3.0], [2.0, 2.0]])
        0.5
    """
    return _mean(_moment(x, 2))


def input_rms(x: ArrayLike) -> float:
    """Root of the mean of the squares of all elements.

    Example:
        >>> input_rms([[3.0, 3.0], [-3.0, 3.0]])
        3.0
    """
    with np.errstate(over="ignore"):
        return float(np.sqrt(_mean(np.square(np.asarray(x, np.float64)))))


def input_max_abs(x: ArrayLike) -> float:
    """Largest magnitude of all elements.

    Example:
        >>> input_max_abs([[1.0, -3.0], [2.0, 2.0]])
        3.0
    """
    values = np.abs(np.asarray(x, np.float64))
    return float(values.max()) if values.size else float("nan")


def input_kurtosis(x: ArrayLike) -> float:
    """Mean over tokens of the kurtosis over features: mean (x - mean)^4 / variance^2.

    Returns:
        3 for normally distributed features, up to their number when one of them is far out. A
        token whose features are all equal counts with 0.

    Example:
        >>> input_kurtosis([[1.0, -1.0, 1.0, -1.0]]), round(input_kurtosis([[1.0] + 99 * [0]]), 2)
        (1.0, 98.01)
    """
    variance, fourth = _moment(x, 2), _moment(x, 4)
    flat = variance == 0
    with np.errstate(invalid="ignore", over="ignore"):
        return _mean(np.where(flat, 0.0, fourth / np.where(flat, 1.0, np.square(variance))))


def unit_zero_share(x: ArrayLike) -> float:
    """Share of all elements that are exactly 0: inactive units under a ReLU.

    Example:
        >>> unit_zero_share([[0.0, 3.0], [0.0, 0.0]])
        0.75
    """
    return _mean(np.asarray(x, np.float64) == 0)


def dead_share(x: ArrayLike) -> float:
    """Share of units (features) that are 0 for every token.

    Example:
        >>> dead_share([[0.0, 3.0], [0.0, 0.0]])
        0.5
    """
    values = np.asarray(x, np.float64)
    if not values.size:
        return float("nan")
    return _mean((values.reshape(-1, values.shape[-1]) == 0).all(axis=0))


def _moment(x: ArrayLike, power: int) -> NDArray[np.float64]:
    """Central moment of each token, over its features."""
    values = np.asarray(x, np.float64)
    if not values.size:
        return np.empty(0)
    with np.errstate(invalid="ignore", over="ignore"):
        centred = values - values.mean(axis=-1, keepdims=True)
        return np.asarray((centred**power).mean(axis=-1), np.float64)


def _mean(values: NDArray[Any]) -> float:
    with np.errstate(invalid="ignore"):
        return float(values.mean()) if values.size else float("nan")


MEASURES = (
    Measure(
        tag="norm_input_mean",
        formula="mean over tokens and features of the input of a normalisation",
        unit="",
        axes=("cell",),
        reduction="mean",
        source="Ba, Kiros, Hinton 2016, Layer Normalization (arXiv 1607.06450): mu",
        reference=input_mean,
        family="activation",
        place="norm",
    ),
    Measure(
        tag="norm_input_variance",
        formula="mean over tokens of the variance over features of the input of a normalisation",
        unit="",
        axes=("cell",),
        reduction="mean",
        source="Ba, Kiros, Hinton 2016, Layer Normalization (arXiv 1607.06450): sigma^2",
        reference=input_variance,
        family="activation",
        place="norm",
    ),
    Measure(
        tag="norm_input_rms",
        formula="sqrt of the mean over tokens and features of x^2, x the input of a normalisation",
        unit="",
        axes=("cell",),
        reduction="mean",
        source="Zhang, Sennrich 2019, Root Mean Square Layer Normalization (arXiv 1910.07467)",
        reference=input_rms,
        family="activation",
        place="norm",
    ),
    Measure(
        tag="norm_input_max_abs",
        formula="max over tokens and features of |x|, x the input of a normalisation",
        unit="",
        axes=("cell",),
        reduction="max",
        source="Sun et al. 2024, Massive Activations in Large Language Models (arXiv 2402.17762)",
        reference=input_max_abs,
        family="activation",
        place="norm",
        within="max",
    ),
    Measure(
        tag="norm_input_kurtosis",
        formula="mean over tokens of mean_f (x - mean_f x)^4 / (variance over features)^2",
        unit="",
        axes=("cell",),
        reduction="mean",
        source="Bondarenko, Nagel, Blankevoort 2023, Quantizable Transformers (arXiv 2306.12929)",
        reference=input_kurtosis,
        family="activation",
        place="norm",
    ),
    Measure(
        tag="ffn_zero_share",
        formula="inner activations of an FFN that are 0 / all of them",
        unit="",
        axes=("cell",),
        reduction="mean",
        source="Li et al. 2022, The Lazy Neuron Phenomenon (arXiv 2210.06313)",
        reference=unit_zero_share,
        family="activation",
        place="ffn",
    ),
    Measure(
        tag="ffn_dead_share",
        formula="inner units of an FFN that are 0 for every token of the batch / all its units",
        unit="",
        axes=("cell",),
        reduction="mean",
        source="Voita, Ferrando, Nalmpantis 2023, Neurons in Large Language Models: Dead, N-gram, "
        "Positional (arXiv 2309.04827)",
        reference=dead_share,
        family="activation",
        place="ffn",
    ),
    Measure(
        tag="ffn_histogram",
        formula="inner activations of an FFN whose magnitude is in the bin / all of them",
        unit="",
        axes=("cell", "bin"),
        reduction="mean",
        source="Schneider, Dangel, Hennig 2021, Cockpit (arXiv 2102.06604), which keeps "
        "histograms of gradients; bins by powers of two here",
        reference=histogram,
        family="activation",
        place="ffn",
        level="all",
    ),
)
