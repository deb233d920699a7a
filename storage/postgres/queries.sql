-- Statements with a join or a lock, each with a line on why it is safe.
-- `storage.postgres.queries` reads this file: a statement begins at its `-- name:` line.


-- name: hold_name
-- One writer for each name until its transaction ends; the partial unique indexes stand behind it.
select pg_advisory_xact_lock(hashtextextended(:name, 0));


-- name: notify
-- Heard after the commit, and not at all after a rollback.
select pg_notify(:channel, :payload);


-- name: deleted_logs
-- Nothing locks: a deleted row never comes back to life, so what this finds stays true.
select namespace, log_id
  from (select namespace, log_id, deleted_at_ms
          from queues
         union all
        select s.namespace, h.log_id, least(h.expired_at_ms, s.deleted_at_ms)
          from streams s join shards h using (stream_id)) as logs_of
 where deleted_at_ms <= :deleted_before_ms and log_id > :after
 order by log_id
 limit :limit;


-- name: forget_deleted_shards
-- Only of deleted streams and expired ones of living streams, whatever the caller says.
delete from shards h
 using streams s
 where s.stream_id = h.stream_id and h.log_id = any(:log_ids)
   and (s.deleted_at_ms is not null or h.expired_at_ms is not null);


-- name: forget_empty_streams
-- A deleted stream goes with its last shard.
delete from streams s
 where s.deleted_at_ms is not null
   and not exists (select from shards h where h.stream_id = s.stream_id);


-- name: lock_log
-- The row lock makes openings of one log take turns; a deletion of its row waits, or is found done.
select ceiling, store_epoch, log_epoch, epoch_start
  from logs
 where log_id = :log_id
   for update;


-- name: children_of_log
-- Nothing locks: the rows of a log's children exist before it is closed, and for as long as it does.
select c.index, c.log_id, c.first_hash_key, c.last_hash_key, c.opened_at_ms, c.parents
  from shards p join shards c on c.stream_id = p.stream_id and p.index = any(c.parents)
 where p.log_id = :log_id
 order by c.index;


-- name: raise_ceiling
-- One statement on one row: concurrent raises take turns and none lowers it.
update logs
   set ceiling = greatest(ceiling, :at_least)
 where log_id = :log_id and store_epoch = :store_epoch
returning ceiling;


-- name: hold_deployment
-- One process decides about the store's epoch at a time; a reader does not wait.
select pg_advisory_xact_lock(:key);


-- name: beat
-- Late beats do not lower it; a beat of an earlier epoch's store is not heard.
update deployment
   set beacon = greatest(beacon, :beacon)
 where cast(:epoch as bigint) is null or store_epoch = :epoch;


-- name: insert_namespace
-- Whoever comes first gives the account id, which is then fixed.
insert into namespaces (name, account_id) values (:name, :account_id) on conflict (name) do nothing;
