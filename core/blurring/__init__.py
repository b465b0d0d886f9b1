"""Methods without a privacy guarantee: each row is a blurred real person.

They have a registry and a path of their own. No method, curator, plan preview or ledger takes them.
"""
