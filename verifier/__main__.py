"""``python -m verifier DIR [--key FILE] [--ledger EXPORT.json]``."""

import os
import sys

from .check import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:  # a failed check may not have been shown to anyone
        print(f"cannot write the findings: {error.strerror}", file=sys.stderr)
        os._exit(2)
