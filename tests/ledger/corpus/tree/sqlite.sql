
CREATE TABLE api_keys (
	id VARCHAR(16) NOT NULL, 
	digest BLOB NOT NULL, 
	principal VARCHAR(200) NOT NULL, 
	role VARCHAR(6) NOT NULL, 
	bundles TEXT NOT NULL, 
	subjects TEXT NOT NULL, 
	created BIGINT NOT NULL, 
	expires BIGINT, 
	revoked BIGINT, 
	PRIMARY KEY (id), 
	CONSTRAINT api_keys_once UNIQUE (digest), 
	CONSTRAINT api_keys_role CHECK (role = 'client' OR role = 'owner')
)


;;

CREATE TABLE head (
	id INTEGER NOT NULL, 
	ledger VARCHAR(36) NOT NULL, 
	seq BIGINT NOT NULL, 
	digest BLOB NOT NULL, 
	link BLOB NOT NULL, 
	root BLOB NOT NULL, 
	spent_epsilon BIGINT DEFAULT '0' NOT NULL, 
	spent_delta BIGINT DEFAULT '0' NOT NULL, 
	gap_epsilon BIGINT DEFAULT '0' NOT NULL, 
	gap_delta BIGINT DEFAULT '0' NOT NULL, 
	first_required VARCHAR(40) DEFAULT '' NOT NULL, 
	required VARCHAR(40) DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT head_is_one_row CHECK (id = 1)
)


;;

CREATE TABLE nodes (
	place INTEGER NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (place)
)


;;

CREATE TABLE plan_counts (
	name VARCHAR(64) NOT NULL, 
	booked VARCHAR(200) NOT NULL, 
	queries BIGINT NOT NULL, 
	answers BIGINT NOT NULL, 
	asked BIGINT NOT NULL, 
	answered BIGINT NOT NULL, 
	PRIMARY KEY (name), 
	CONSTRAINT plan_counts_asked CHECK (asked BETWEEN 0 AND queries), 
	CONSTRAINT plan_counts_answered CHECK (answered BETWEEN 0 AND answers)
)


;;

CREATE TABLE service_answers (
	principal VARCHAR(200) NOT NULL, 
	idempotency_key VARCHAR(128) NOT NULL, 
	request BLOB NOT NULL, 
	state VARCHAR(8) NOT NULL, 
	charged_at BIGINT NOT NULL, 
	due BIGINT NOT NULL, 
	booked VARCHAR(64) NOT NULL, 
	receipt VARCHAR(16), 
	body BLOB, 
	PRIMARY KEY (principal, idempotency_key), 
	CONSTRAINT service_answers_receipt UNIQUE (receipt), 
	CONSTRAINT service_answers_state CHECK ((state = 'answered' AND receipt IS NOT NULL AND body IS NOT NULL) OR (state = 'removed' AND receipt IS NOT NULL AND body IS NULL) OR ((state = 'charged' OR state = 'lost') AND receipt IS NULL AND body IS NULL))
)


;;

CREATE TABLE statements (
	id INTEGER NOT NULL, 
	statement TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT statements_once UNIQUE (statement)
)


;;

CREATE TABLE accounts (
	id INTEGER NOT NULL, 
	principal VARCHAR(200) NOT NULL, 
	subject VARCHAR(200) NOT NULL, 
	bundle VARCHAR(200) NOT NULL, 
	statement_id BIGINT NOT NULL, 
	spent_epsilon BIGINT NOT NULL, 
	spent_delta BIGINT NOT NULL, 
	answers BIGINT NOT NULL, 
	reservations BIGINT NOT NULL, 
	commits BIGINT NOT NULL, 
	last_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT accounts_once UNIQUE (principal, subject, bundle), 
	CONSTRAINT accounts_key UNIQUE (id, statement_id), 
	CONSTRAINT accounts_not_negative CHECK (spent_epsilon >= 0 AND spent_delta >= 0 AND answers >= 0), 
	CONSTRAINT accounts_commits CHECK (commits BETWEEN 0 AND reservations), 
	CONSTRAINT accounts_statement FOREIGN KEY(statement_id) REFERENCES statements (id)
)


;;

CREATE TABLE budgets (
	id INTEGER NOT NULL, 
	principal VARCHAR(200) NOT NULL, 
	subject VARCHAR(200) NOT NULL, 
	bundle VARCHAR(200) NOT NULL, 
	statement_id BIGINT NOT NULL, 
	granted_epsilon BIGINT NOT NULL, 
	granted_delta BIGINT NOT NULL, 
	spent_epsilon BIGINT NOT NULL, 
	spent_delta BIGINT NOT NULL, 
	gap_epsilon BIGINT DEFAULT '0' NOT NULL, 
	gap_delta BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT budgets_once UNIQUE (principal, subject, bundle), 
	CONSTRAINT budgets_epsilon CHECK (spent_epsilon BETWEEN 0 AND granted_epsilon), 
	CONSTRAINT budgets_delta CHECK (spent_delta BETWEEN 0 AND granted_delta), 
	CONSTRAINT budgets_statement FOREIGN KEY(statement_id) REFERENCES statements (id)
)


;;

CREATE TABLE entries (
	seq INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	action VARCHAR(7) NOT NULL, 
	budget_id BIGINT, 
	account_id BIGINT, 
	statement_id BIGINT, 
	epsilon BIGINT NOT NULL, 
	delta BIGINT NOT NULL, 
	answers BIGINT NOT NULL, 
	mechanism TEXT NOT NULL, 
	reservation BIGINT, 
	receipt TEXT NOT NULL, 
	state BLOB NOT NULL, 
	digest BLOB NOT NULL, 
	PRIMARY KEY (seq), 
	CONSTRAINT entries_commit_once UNIQUE (reservation), 
	CONSTRAINT entries_account FOREIGN KEY(account_id, statement_id) REFERENCES accounts (id, statement_id), 
	CONSTRAINT entries_not_negative CHECK (epsilon >= 0 AND delta >= 0 AND answers >= 0), 
	CONSTRAINT entries_action CHECK ((action = 'grant' AND budget_id IS NOT NULL AND account_id IS NULL AND reservation IS NULL) OR (action = 'reserve' AND budget_id IS NULL AND account_id IS NOT NULL AND reservation IS NULL AND answers > 0) OR (action = 'commit' AND budget_id IS NULL AND account_id IS NOT NULL AND reservation IS NOT NULL) OR (action = 'gap' AND budget_id IS NOT NULL AND account_id IS NULL AND reservation IS NULL) OR ((action = 'policy' OR action = 'accept' OR action = 'note') AND budget_id IS NULL AND account_id IS NULL AND reservation IS NULL)), 
	CONSTRAINT entries_have_a_statement CHECK (statement_id IS NOT NULL OR action = 'policy' OR action = 'accept' OR action = 'note'), 
	CONSTRAINT entries_budget FOREIGN KEY(budget_id) REFERENCES budgets (id), 
	CONSTRAINT entries_statement FOREIGN KEY(statement_id) REFERENCES statements (id), 
	CONSTRAINT entries_reservation FOREIGN KEY(reservation) REFERENCES entries (seq)
)


;;
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)
;;
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END
;;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END
