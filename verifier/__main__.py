"""``python -m verifier DIR [--key FILE] [--ledger EXPORT.json]``."""

import os
import sys

from .check import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:  # nobody may have read that a check failed
        print(f"cannot write the findings: {error.strerror}", file=sys.stderr)
        os._exit(2)
