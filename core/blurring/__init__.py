"""Methods without a privacy guarantee: each row is a blurred real person.

They have a separate registry and code path. No method, curator, plan preview or ledger accepts them.
"""
