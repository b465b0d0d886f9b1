"""Price of a fence in one sentence: the smaller gap between groups, and the loss of accuracy."""

from __future__ import annotations


def price(
    gap: tuple[float | None, float | None], accuracy: tuple[float | None, float | None], without: str, with_: str
) -> str:
    """Return the sentence, or "" if a gap is unknown. Each figure is a pair: without and with the fence."""
    before, after = gap
    if before is None or after is None:
        return ""
    if round(100 * abs(after - before)) == 0:
        text = f"{with_}, the gap between the groups stays at {100 * after:.0f} points"
    else:
        moved = "falls" if after < before else "rises"
        text = f"{with_} instead of {without}, the gap between the groups {moved} from {100 * before:.0f} to "
        text += f"{100 * after:.0f} points"
    one, other = accuracy
    if one is None or other is None:
        return text + "."
    lost = round(100 * (one - other))
    if lost == 0:
        return text + "; predictions lose no accuracy."
    points = f"{abs(lost)} point{'s' * (abs(lost) != 1)}"
    return f"{text}; predictions {'lose' if lost > 0 else 'gain'} {points} of accuracy."
