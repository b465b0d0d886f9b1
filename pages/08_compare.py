"""Compare: several plans tried side by side on an example or on a public table. Confidential."""

from espalier.pages.common import shell, sign_in
from espalier.pages.compare import comparison
from espalier.pages.glossary.terms import term

sign_in.enter("steward")
state = shell.start(
    "Compare",
    f"Try several plans on the open table before you choose one. See what the method, the {term('budget')} and the "
    f"{term('fence')} change.",
)
project = shell.need_project(state)
comparison.rehearsal()
chosen = comparison.plans(state, project)
if state.job is not None:
    shell.progress()
elif comparison.allowed(state):
    comparison.start_button(state, chosen, comparison.tested_on(state, project))
comparison.results(state, chosen)
shell.sidebar(state)
