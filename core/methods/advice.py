"""What annotations mean for a plan: sentences for the person who plans."""

from __future__ import annotations

from core.project.file import Project


def advice(project: Project) -> tuple[str, ...]:
    """What PRISM's regime should know about arrows that may break elsewhere, or are contested. Empty for other methods.

    A direct cause is stable elsewhere as long as its own arrow is (PRISM §3.2): the causal regime leans on the arrows
    into the target, the graphical one on those of its Markov blanket, the predictive one on no drawing at all.
    """
    plan, dag, target = project.plan, project.dag, project.plan.target
    if plan.method != "prism" or target is None:
        return ()
    blanket = {target, *dag.blanket(target)}
    children = {target, *dag.children(target)}
    leans = {
        "causal": [e for e in dag.edges if e[1] == target],
        "graphical": [e for e in dag.edges if e[1] in children and blanket.issuperset(e)],
        "predictive": [e for e in dag.edges if target in e],
    }[plan.regime]
    out: list[str] = []
    if fragile := [e for e in leans if e in dag.may_break]:
        shown = _arrows(fragile)
        if plan.regime == "causal":
            out.append(
                f"Marked as may break elsewhere: {shown}. The causal regime leans on it all the same: where it does "
                f"not hold, do not use this table, or take the arrow out of the drawing."
            )
        elif plan.regime == "graphical":
            out.append(
                f"Marked as may break elsewhere: {shown}. The graphical regime leans on it. For use elsewhere choose "
                f"the causal regime, which keeps to the direct causes of {target}."
            )
        else:
            out.append(
                f"Marked as may break elsewhere: {shown}. The predictive regime does not read the drawing and may "
                f"choose such a column. For use elsewhere choose the causal regime."
            )
    if plan.regime != "predictive" and (open_ := [e for e in leans if e in dag.contested]):
        less = dag.without(dag.contested)
        drawn = dag.parents(target) if plan.regime == "causal" else dag.blanket(target)
        left = less.parents(target) if plan.regime == "causal" else less.blanket(target)
        gone = [n for n in drawn if n not in left]
        what = f"without it, {', '.join(gone)} would not be measured with {target}" if gone else "the columns stay"
        out.append(f"The {plan.regime} regime rests on contested knowledge, {_arrows(open_)}: {what}.")
    return tuple(out)


def _arrows(edges: list[tuple[str, str]]) -> str:
    return ", ".join(f"{a} → {b}" for a, b in edges[:6]) + (" …" if len(edges) > 6 else "")
