-- Roles of the ledger. Run once, as PostgreSQL's administrator, in any database:
--   psql -v ON_ERROR_STOP=1 -f ledger-roles.sql
-- Then set a password for each of the two roles that sign in: \password espalier_app
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'espalier_owner') THEN CREATE ROLE espalier_owner NOLOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'espalier_app') THEN CREATE ROLE espalier_app LOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'espalier_auditor') THEN CREATE ROLE espalier_auditor LOGIN; END IF;
END $$;
ALTER ROLE espalier_auditor SET default_transaction_read_only = on;
