"""Methods without a privacy guarantee: each row is a blurred copy of a real row.

They have a separate registry and code path. No method, curator, plan preview or ledger accepts them.
"""
