"""Sentences of a statement that are the same for every release."""

from __future__ import annotations

ADJACENT = {
    ("replace-one", False): "Two tables are adjacent if they have the same number of rows and differ in at most {k} of "
    "them, and these rows are one person's in either table.",
    ("add-remove", False): "Two tables are adjacent if one of them is the other without at most {k} rows, and these "
    "rows are one person's.",
    ("replace-one", True): "Two tables are adjacent if one person, all rows with one value of {person}, is replaced by "
    "another person or by no one. At most {k} rows of each person are kept, and the kept rows are filled up or cut at "
    "random to a declared number.",
    (
        "add-remove",
        True,
    ): "Two tables are adjacent if removing one person from one table gives the other: all rows with one "
    "value of {person}. At most {k} rows of each person are kept.",
}
LINKED_ADJACENT = {
    "replace-one": "Two pairs of tables are adjacent if one person, all rows of both with one value of {person}, is "
    "replaced by another person or by no one. At most {keep} visits of each person are kept, and the kept people "
    "are filled up or cut at random to a declared number.",
    "add-remove": "Two pairs of tables are adjacent if removing one person from one pair gives the other: all rows of "
    "both tables with one value of {person}. At most {keep} visits of each person are kept.",
}
"""Sentences for linked tables."""
CONVERSION = {
    "currency": "zero-concentrated differential privacy (zCDP; Bun and Steinke 2016), in ρ",
    "conversion": "ε is the least of αρ + ln((α − 1)/α) − (ln δ + ln α)/(α − 1) over α > 1 (Canonne, Kamath and "
    "Steinke 2020), at δ less the δ₀ of all draws; rounded up.",
}
PURE_CONVERSION = {
    "currency": "pure differential privacy (Dwork, McSherry, Nissim and Smith 2006), in ε; ρ is what the draws add to "
    "a total in zero-concentrated differential privacy",
    "conversion": "A draw with Laplace noise and cost ρ is √(2ρ)-DP, a choice of cost ρ is √(8ρ)-DP; ε is their sum, "
    "rounded up, and δ is 0.",
}
"""Conversion to (ε, 0) if every draw has a pure guarantee."""
PURE_SEQUENTIAL = (
    "Sequential and adaptive: each draw may depend on the answers to earlier ones, and ε adds up (Rogers, Roth, Ullman "
    "and Vadhan 2016), as does ρ."
)
SEQUENTIAL = (
    "Sequential and adaptive: each draw may depend on the answers to earlier ones, and ρ adds up (Whitehouse, Ramdas, "
    "Rogers and Wu 2023)."
)
DISJOINT = (
    "Parallel: these draws saw only people (rows) who were held out at random before the first draw. No one is in both "
    "parts, so the larger of the two sums counts. The proof is in core/privacy/contribution.py: split."
)
POST_PROCESSING = (
    "The model is fitted to the noisy answers, and the rows are drawn from the model. Neither reads the private table.",
    "Report, label, copies and intervals are computed from noisy answers, the model and public facts.",
)
NOT_PROTECTED = (
    "The schema: column names, categories and bin edges that were declared, or guessed and then confirmed as public.",
    "That the table has at least one row.",
    "The running time of the release, and whether and why a release was refused or cancelled.",
    "Information in other releases from the same people that the named ledger does not record.",
    "What holds for people in general: an association that the table shows can be applied to a person outside it.",
)
ROWS_ARE_PUBLIC = "The number of rows of the private table, or the declared number that it was filled up or cut to."
ASSUMED = (
    "The number of rows per person holds as stated under unit.stated.",
    "The author of a view or of a query that was released from applies no rule in which one person's rows change "
    "another person's.",
    "The operator ran the program as it was published, on the table that was named, and kept no other output of it.",
    "The operating system's random generator is sound.",
)
