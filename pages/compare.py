"""Compare: several plans released side by side on an example, or on a table that is public. Confidential."""

from pages.parts import compare, doors, shell

doors.enter("steward")
state = shell.start(
    "Compare", "See what a method, a budget or the fence changes, before you choose: several plans, the same figures."
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
