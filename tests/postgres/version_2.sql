-- The tables of version 2 of the store in PostgreSQL, before those of blocks had partitions.
CREATE TABLE noderpc_schema (version bigint NOT NULL, oldest bigint NOT NULL);
CREATE TABLE chain (
    id bigint PRIMARY KEY,
    chain_id text COLLATE "C" NOT NULL,
    initial_height bigint NOT NULL,
    application text COLLATE "C" NOT NULL,
    app_hash bytea,
    beginning bytea NOT NULL,
    genesis bytea,
    app_state bytea,
    trusted_height bigint,
    trusted bytea,
    dialect text COLLATE "C" NOT NULL DEFAULT '',
    revision bigint NOT NULL DEFAULT 0
);
CREATE TABLE blocks (
    height bigint PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    time bigint NOT NULL,
    proposer bytea NOT NULL,
    size bigint NOT NULL,
    tx_count bigint NOT NULL,
    header bytea NOT NULL,
    events text COLLATE "C",
    unchecked text COLLATE "C" NOT NULL,
    unverified text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL
);
CREATE INDEX blocks_unchecked ON blocks (unchecked, height) WHERE unchecked <> '';
CREATE INDEX blocks_left_out ON blocks (height) WHERE events IS NULL;
CREATE INDEX blocks_time ON blocks (time);
CREATE INDEX blocks_with_txs ON blocks (height, tx_count) WHERE tx_count > 0;
CREATE TABLE commits (height bigint PRIMARY KEY, "commit" bytea NOT NULL);
CREATE TABLE results (height bigint PRIMARY KEY, results bytea);
CREATE INDEX results_missing ON results (height) WHERE results IS NULL;
CREATE TABLE tx_slices (place bigint PRIMARY KEY, txs bytea NOT NULL);
CREATE TABLE txs (
    place bigint PRIMARY KEY,
    hash bytea NOT NULL,
    code bigint NOT NULL,
    gas_wanted bigint NOT NULL,
    gas_used bigint NOT NULL,
    events text COLLATE "C"
);
CREATE INDEX txs_hash ON txs (hash, code);
CREATE INDEX txs_left_out ON txs (place) WHERE events IS NULL;
CREATE TABLE evidence (
    height bigint NOT NULL,
    position bigint NOT NULL,
    hash bytea NOT NULL,
    kind text COLLATE "C" NOT NULL,
    offence bigint NOT NULL,
    evidence bytea NOT NULL,
    PRIMARY KEY (height, position)
);
CREATE INDEX evidence_hash ON evidence (hash);
CREATE INDEX evidence_offence ON evidence (offence);
CREATE TABLE validator_sets (
    since bigint PRIMARY KEY, until bigint, size bigint NOT NULL, members bytea NOT NULL
);
CREATE TABLE validators (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, address bytea NOT NULL UNIQUE
);
CREATE TABLE missed_votes (
    height bigint NOT NULL,
    validator_id bigint NOT NULL,
    flag bigint NOT NULL,
    PRIMARY KEY (height, validator_id)
);
CREATE INDEX missed_votes_validator ON missed_votes (validator_id, height, flag);
CREATE TABLE validator_priorities (
    height bigint PRIMARY KEY, until bigint, priorities bytea NOT NULL
);
CREATE TABLE consensus_params (since bigint PRIMARY KEY, until bigint, params bytea NOT NULL);
CREATE TABLE pending_evidence (
    hash bytea PRIMARY KEY,
    height bigint NOT NULL,
    time bigint NOT NULL,
    size bigint NOT NULL,
    evidence bytea NOT NULL
);
CREATE TABLE metadata (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE refuted_results (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, height bigint NOT NULL
);
CREATE TABLE app_state (key bytea NOT NULL, value bytea NOT NULL);
CREATE UNIQUE INDEX app_state_key ON app_state (sha256(key));
CREATE TABLE rewinds (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, height bigint NOT NULL
);
CREATE TABLE evm_hits (key bigint NOT NULL, place bigint NOT NULL, PRIMARY KEY (key, place));
CREATE TABLE evm_unindexed (height bigint PRIMARY KEY);
CREATE TABLE filters (
    id text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    cursor bigint NOT NULL,
    criteria text COLLATE "C" NOT NULL,
    expires bigint NOT NULL,
    owner text COLLATE "C" NOT NULL DEFAULT '',
    rowid bigint GENERATED ALWAYS AS IDENTITY
);
CREATE TABLE lease (
    id bigint PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    expires bigint NOT NULL,
    last_error text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 10);
INSERT INTO lease (id, owner, epoch, expires) VALUES (1, '', 0, 0);
CREATE TABLE tx_keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bytea NOT NULL,
    places bigint NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX tx_keys_key ON tx_keys (sha256(key));
CREATE TABLE tx_values (
    id bigint PRIMARY KEY,
    key_id bigint NOT NULL,
    digest bigint NOT NULL,
    value bytea NOT NULL,
    number text COLLATE "C",
    places bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX tx_values_digest ON tx_values (key_id, digest);
CREATE INDEX tx_values_number ON tx_values (key_id, number)
    WHERE number IS NOT NULL;
CREATE TABLE tx_hits (
    value_id bigint NOT NULL,
    place bigint NOT NULL,
    event bigint NOT NULL,
    PRIMARY KEY (value_id, place, event)
);
CREATE TABLE block_keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bytea NOT NULL,
    places bigint NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX block_keys_key ON block_keys (sha256(key));
CREATE TABLE block_values (
    id bigint PRIMARY KEY,
    key_id bigint NOT NULL,
    digest bigint NOT NULL,
    value bytea NOT NULL,
    number text COLLATE "C",
    places bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX block_values_digest ON block_values (key_id, digest);
CREATE INDEX block_values_number ON block_values (key_id, number)
    WHERE number IS NOT NULL;
CREATE TABLE block_hits (
    value_id bigint NOT NULL,
    place bigint NOT NULL,
    event bigint NOT NULL,
    PRIMARY KEY (value_id, place, event)
);
CREATE TABLE mempool (
    seq bigint PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    size bigint NOT NULL,
    gas_wanted bigint NOT NULL,
    tx bytea NOT NULL,
    other_hash bytea,
    sender bytea,
    nonce bigint,
    fee_cap bytea,
    tip bytea
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX mempool_other_hash ON mempool (other_hash);
CREATE UNIQUE INDEX mempool_sender ON mempool (sender, nonce);
CREATE TABLE tx_cache (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    arrival bigint
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX tx_cache_arrival ON tx_cache (arrival);
CREATE TABLE mempool_totals (
    id bigint PRIMARY KEY, txs bigint NOT NULL, bytes bigint NOT NULL, last_seq bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO mempool_totals VALUES (1, 0, 0, 0);
CREATE FUNCTION noderpc_mempool_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mempool_totals SET txs = txs + 1, bytes = bytes + new.size, last_seq = last_seq + 1
        RETURNING last_seq INTO new.seq;
    RETURN new;
END $$;
CREATE TRIGGER mempool_added BEFORE INSERT ON mempool
    FOR EACH ROW EXECUTE FUNCTION noderpc_mempool_added();
CREATE FUNCTION noderpc_mempool_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mempool_totals AS t SET txs = t.txs - gone.txs, bytes = t.bytes - gone.bytes
        FROM (SELECT count(*) AS txs, coalesce(sum(size), 0) AS bytes FROM removed) AS gone
        WHERE gone.txs > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER mempool_removed AFTER DELETE ON mempool REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION noderpc_mempool_removed();
CREATE TABLE tx_counts (heights bigint PRIMARY KEY, txs bigint NOT NULL)
    WITH (fillfactor = 50);
CREATE VIEW block_list AS
    SELECT height, to_timestamp(time / 1000000000.0) AS time, encode(hash, 'hex') AS hash,
           encode(proposer, 'hex') AS proposer, tx_count, size, unchecked, unverified, source
    FROM blocks;
CREATE VIEW missed_vote_list AS
    SELECT encode(address, 'hex') AS validator, height,
           CASE flag WHEN 1 THEN 'absent' ELSE 'nil' END AS vote
    FROM validators JOIN missed_votes ON validator_id = id;
CREATE VIEW tx_list AS
    SELECT place >> 20 AS height, place & 1048575 AS position, encode(hash, 'hex') AS hash,
           code, gas_wanted, gas_used
    FROM txs;
CREATE VIEW tx_events AS
    SELECT h.place >> 20 AS height, h.place & 1048575 AS position, h.event,
           encode(k.key, 'escape') AS key, encode(v.value, 'escape') AS value
    FROM tx_hits AS h JOIN tx_values AS v ON v.id = h.value_id
    JOIN tx_keys AS k ON k.id = v.key_id;
CREATE VIEW block_events AS
    SELECT h.place AS height, h.event,
           encode(k.key, 'escape') AS key, encode(v.value, 'escape') AS value
    FROM block_hits AS h JOIN block_values AS v ON v.id = h.value_id
    JOIN block_keys AS k ON k.id = v.key_id;
ALTER TABLE blocks ALTER COLUMN header SET STORAGE EXTERNAL;
ALTER TABLE commits ALTER COLUMN "commit" SET STORAGE EXTERNAL;
ALTER TABLE results ALTER COLUMN results SET STORAGE EXTERNAL;
ALTER TABLE tx_slices ALTER COLUMN txs SET STORAGE EXTERNAL;
ALTER TABLE validator_sets ALTER COLUMN members SET STORAGE EXTERNAL;
ALTER TABLE mempool ALTER COLUMN tx SET STORAGE EXTERNAL;
ALTER TABLE app_state ALTER COLUMN value SET STORAGE EXTERNAL;
INSERT INTO noderpc_schema VALUES (2, 1);
