-- A role that reads listed tables of a warehouse, and nothing else. Run as administrator in the warehouse's database,
-- once for each schema:
--   psql -v ON_ERROR_STOP=1 -d clinic -v schema=public -v tables='visits, patients' -f warehouse.sql
-- Then give it a password: \password espalier_reader
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'espalier_reader') THEN
    CREATE ROLE espalier_reader LOGIN CONNECTION LIMIT 8;
  END IF;
END $$;
ALTER ROLE espalier_reader SET default_transaction_read_only = on;
ALTER ROLE espalier_reader SET lock_timeout = '30s';
GRANT USAGE ON SCHEMA :"schema" TO espalier_reader;
SET search_path = :"schema";
GRANT SELECT ON :tables TO espalier_reader;
