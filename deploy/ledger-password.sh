#!/bin/sh
# Sets the password of the app's role when the ledger's container starts for the first time.
set -eu
psql -v ON_ERROR_STOP=1 -v word="$LEDGER_PASSWORD" -U postgres -d ledger <<'SQL'
ALTER ROLE espalier_app PASSWORD :'word';
SQL
