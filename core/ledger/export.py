"""Export of the ledger as plain values for a JSON file and lines for a CSV file. Neither contains a private figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from espalier.core.csv_safety import defuse
from espalier.core.ledger.events import Event
from espalier.core.ledger.population import Entry, Part, Population
from espalier.core.ledger.replay import replay

FORMAT = "espalier-ledger/1"


def exported(events: Sequence[Event]) -> dict[str, Any]:
    """Return the events as plain values, and the result of replaying them."""
    out = []
    for p in replay(events).values():
        facts = {k: v for k, v in vars(p).items() if k not in ("entries", "tables", "diagnoses")}
        counts = {
            "spent": p.spent,
            "epsilon_spent": p.epsilon_after(p.spent),
            "left": p.left,
            "delta_spent": p.delta_spent,
            "delta_left": p.delta_left,
        }
        entries = [facts_of(p, entry) for entry in p.entries]
        out.append(
            {
                **facts,
                "tables": list(p.tables),
                "units": {t: p.unit_of(t) for t in p.tables},
                "caveats": p.caveats,
                **counts,
                "largest_next": p.largest(),
                "diagnoses": [vars(d) for d in p.diagnoses],
                "entries": entries,
            }
        )
    return {"format": FORMAT, "populations": out, "events": [dict(e.row()) for e in events]}


def facts_of(population: Population, entry: Entry) -> dict[str, Any]:
    """Return an entry as plain values, with ε before and after at the population's δ, and the same for each of its
    parts.
    """

    def epsilons(one: Entry | Part) -> dict[str, float]:
        before, after = population.epsilon_after(one.rho_before), population.epsilon_after(one.rho_after)
        return {"epsilon_before": before, "epsilon_after": after}

    return {
        **{k: v for k, v in vars(entry).items() if k != "chain"},
        "plan": dict(entry.plan),
        **epsilons(entry),
        "parts": [{**vars(part), "status": entry.status, **epsilons(part)} for part in entry.parts],
        "undrawn": entry.undrawn,
        "unit": entry.unit,
        "enforced": entry.person is not None,
    }


def csv_text(events: Sequence[Event]) -> str:
    """Return the event chain as CSV, one line per event, with ε before and after at the population's δ.

    For an opened table and for a reservation, ``unit`` states whether the row limit per person is enforced or promised.
    """
    populations = replay(events)
    entries = {entry.id: entry for p in populations.values() for entry in p.entries}
    out = io.StringIO()
    heads = [*Event.__dataclass_fields__, "hash", "epsilon_before", "epsilon_after", "unit"]
    writer = csv.DictWriter(out, heads, lineterminator="\n")
    writer.writeheader()
    for e in events:
        p = populations[e.population]
        before, after = (None if r is None else p.epsilon_after(r) for r in (e.rho_before, e.rho_after))
        unit = entries[e.entry].unit if e.entry else p.unit_of(e.table_name)
        row = {**e.row(), "epsilon_before": before, "epsilon_after": after, "unit": unit}
        writer.writerow({k: defuse(v) if isinstance(v, str) else v for k, v in row.items()})
    return out.getvalue()
