"""Draw learning curves: bits per character of the validation text against seconds of processor time."""

import math
from pathlib import Path

from language_rows import ROWS
from language_table import BASELINES, GROUPS, Found, best

COLOURS = {"a": "#8c8c8c", "b": "#b58900", "c": "#6c8ebf"}
OURS = "#c0392b"


def draw(found: Found, path: Path) -> None:
    """Draw a panel for each language: the best row of each baseline's group, and the best of ours."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(4, len(found))
    lines = math.ceil(len(found) / columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(3.4 * columns, 2.8 * lines), squeeze=False)
    for place in axes.flat[len(found) :]:
        place.axis("off")
    for place, (language, rows) in zip(axes.flat, found.items(), strict=False):
        trained = {name: seeds for name, seeds in rows.items() if seeds[0]["curve"]}  # a mixture has no curve
        for groups in (*BASELINES, [group for group in GROUPS if group not in BASELINES]):
            name = best(trained, [*groups])
            if name is None:
                continue
            result = trained[name][0]
            epoch = result["seconds"]["fairseq-train"] / len(result["curve"])
            times = [epoch * (number + 1) for number in range(len(result["curve"]))]
            colour = COLOURS.get(ROWS[name].group, OURS)
            place.plot(times, result["curve"], ".-", label=name, color=colour, linewidth=1.4, markersize=4)
        place.set_title(language.capitalize(), fontsize=12)
        place.tick_params(labelsize=9)
        place.legend(fontsize=9, frameon=False)
        lowest = min(value for seeds in rows.values() for value in seeds[0]["curve"])
        place.set_ylim(lowest - 0.1, lowest + 1.4)
    figure.supxlabel("seconds of processor time", fontsize=12)
    figure.supylabel("bits per character, validation text", fontsize=12)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
