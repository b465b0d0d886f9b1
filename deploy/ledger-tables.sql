-- Tables of the ledger and the rights on them. Run as administrator in the ledger's own database, once and
-- after each upgrade. Existing objects stay unchanged. PostgreSQL 14 or later.
--   psql -v ON_ERROR_STOP=1 -d ledger -f ledger-tables.sql
BEGIN;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO espalier_owner, espalier_app, espalier_auditor;
GRANT CREATE ON SCHEMA public TO espalier_owner;
SET ROLE espalier_owner;
CREATE TABLE IF NOT EXISTS espalier_events (
	seq INTEGER NOT NULL,
	at TEXT NOT NULL,
	who TEXT NOT NULL,
	kind TEXT NOT NULL,
	population TEXT NOT NULL,
	table_name TEXT NOT NULL,
	entry TEXT,
	neighbors TEXT,
	rows_per_person INTEGER,
	epsilon DOUBLE PRECISION,
	delta DOUBLE PRECISION,
	rho DOUBLE PRECISION,
	rho_before DOUBLE PRECISION,
	rho_after DOUBLE PRECISION,
	plan TEXT,
	fingerprint TEXT,
	released TEXT,
	note TEXT NOT NULL,
	previous TEXT NOT NULL,
	hash TEXT NOT NULL,
	PRIMARY KEY (seq),
	UNIQUE (previous),
	UNIQUE (hash)
);
CREATE TABLE IF NOT EXISTS espalier_journal (
	entry TEXT NOT NULL,
	place INTEGER NOT NULL,
	record BYTEA NOT NULL,
	PRIMARY KEY (entry, place)
);
CREATE TABLE IF NOT EXISTS espalier_meta (
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (key)
);
CREATE TABLE IF NOT EXISTS espalier_releases (
	hash TEXT NOT NULL,
	zip BYTEA NOT NULL,
	PRIMARY KEY (hash)
);
CREATE OR REPLACE FUNCTION espalier_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a ledger only grows'; END $$;
CREATE OR REPLACE TRIGGER espalier_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON espalier_events FOR EACH STATEMENT EXECUTE FUNCTION espalier_only_grows();
INSERT INTO espalier_meta VALUES ('version', '4'), ('head', '00000000000000000000 0000000000000000000000000000000000000000000000000000000000000000')
  ON CONFLICT DO NOTHING;
GRANT SELECT, INSERT ON espalier_events TO espalier_app;
GRANT SELECT ON espalier_events TO espalier_auditor;
GRANT SELECT, INSERT, DELETE ON espalier_journal TO espalier_app;
GRANT SELECT, UPDATE ON espalier_meta TO espalier_app;
GRANT SELECT ON espalier_meta TO espalier_auditor;
GRANT SELECT, INSERT ON espalier_releases TO espalier_app;
GRANT SELECT ON espalier_releases TO espalier_auditor;
RESET ROLE;
REVOKE CREATE ON SCHEMA public FROM espalier_owner;
COMMIT;
