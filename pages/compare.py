"""Compare: several plans released side by side on an example, or on a table that is public. Confidential."""

from espalier.pages.parts import compare, doors, shell
from espalier.pages.parts.glossary import term

doors.enter("steward")
state = shell.start(
    "Compare",
    f"Try several plans on the open table before you choose: what changes with the method, the {term('budget')} or "
    f"the {term('fence')}?",
)
project = shell.need_project(state)
compare.rehearsal()
chosen = compare.plans(state, project)
if state.job is not None:
    shell.progress()
elif compare.allowed(state):
    compare.start_button(state, chosen)
compare.results(state, chosen)
shell.sidebar(state)
