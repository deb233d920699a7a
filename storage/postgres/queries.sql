-- Statements with a join or a lock, each with a line on why it is safe.
-- `storage.postgres.queries` reads this file: a statement begins at its `-- name:` line,
-- and `columns(jobs j)` stands for the columns of a table.


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
        select q.namespace, p.log_id, q.deleted_at_ms
          from queues q join queue_partitions p on p.queue_id = q.log_id
         union all
        select s.namespace, h.log_id, least(h.expired_at_ms, s.deleted_at_ms)
          from streams s join shards h using (stream_id)) as logs_of
 where deleted_at_ms <= :deleted_before_ms and log_id > :after
 order by log_id
 limit :limit;


-- name: forget_deleted_partitions
-- Only of deleted queues, whatever the caller says.
delete from queue_partitions p
 using queues q
 where q.log_id = p.queue_id and p.log_id = any(:log_ids) and q.deleted_at_ms is not null;


-- name: forget_deleted_queues
-- A deleted queue goes with its last partition, which is found by its row: until then it is found again.
delete from queues q
 where q.log_id = any(:log_ids) and q.deleted_at_ms is not null
   and not exists (select from queue_partitions p where p.queue_id = q.log_id);


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


-- name: lock_logs
-- The row locks make openings of one log take turns; a deletion of a row waits, or is found done. In the order of the
-- ids, so that two of these cannot wait for each other.
select log_id, ceiling, store_epoch, log_epoch, epoch_start
  from logs
 where log_id = any(:log_ids)
 order by log_id
   for update;


-- name: children_of_logs
-- Nothing locks: the rows of a log's children exist before it is closed, and for as long as it does.
select p.log_id as parent_log_id, c.index, c.log_id, c.first_hash_key, c.last_hash_key, c.opened_at_ms, c.parents
  from shards p join shards c on c.stream_id = p.stream_id and p.index = any(c.parents)
 where p.log_id = any(:log_ids)
 order by p.log_id, c.index;


-- name: store_reservations
-- After lock_logs: nobody else decides about these logs meanwhile.
update logs l
   set store_epoch = o.store_epoch, log_epoch = o.log_epoch, epoch_start = o.start, ceiling = o.ceiling
  from unnest(cast(:log_ids as text[]), cast(:store_epochs as bigint[]), cast(:log_epochs as bigint[]),
              cast(:starts as bigint[]), cast(:ceilings as bigint[]))
       as o(log_id, store_epoch, log_epoch, start, ceiling)
 where l.log_id = o.log_id;


-- name: delete_swallowed_holes
-- After lock_logs, which every writer of a log's holes holds.
delete from log_holes h
 using unnest(cast(:log_ids as text[]), cast(:firsts as bigint[])) as o(log_id, first)
 where h.log_id = o.log_id and h.next > o.first
returning h.log_id, h.reason;


-- name: raise_ceilings
-- Rows are locked in the order of lock_logs. Each only rises, so concurrent raises lower none.
with locked as (
  select l.log_id, o.at_least
    from unnest(cast(:log_ids as text[]), cast(:store_epochs as bigint[]), cast(:at_least as bigint[]))
         as o(log_id, store_epoch, at_least)
    join logs l on l.log_id = o.log_id and l.store_epoch = o.store_epoch
   order by l.log_id
     for update of l
)
update logs l
   set ceiling = greatest(l.ceiling, o.at_least)
  from locked o
 where l.log_id = o.log_id
returning l.log_id, l.ceiling;


-- name: hold_deployment
-- One process decides about the store's epoch at a time; a reader does not wait.
select pg_advisory_xact_lock(:key);


-- name: beat
-- Late beats do not lower it; a beat of an earlier epoch's store is not heard.
update deployment
   set beacon = greatest(beacon, :beacon)
 where cast(:epoch as bigint) is null or store_epoch = :epoch
returning store_epoch;


-- name: replica_set
-- One statement, so that members, primary and term are of one moment.
select d.store_term, d.store_epoch, d.store_phase, d.min_insync_replicas, d.replid, p.address as primary_address,
       array(select m.address from store_members m order by m.id) as members
  from deployment d left join store_members p on p.id = d.primary_id;


-- name: lock_deployment
-- Two controllers that start with an empty table would both fill it.
select greatest(store_term, store_epoch) as last_term, primary_id, replid from deployment for update;


-- name: create_replica_set
-- Under the lock above, once the members have their rows.
with changed as (
    update deployment
       set store_term = :term, store_epoch = :term, store_phase = 'normal', replid = :replid,
           min_insync_replicas = :min_insync, primary_id = (select id from store_members where address = :primary),
           lossless_since = :term, lossless_until = :term
    returning id)
select pg_notify(:channel, '') from changed;


-- name: dissolve_replica_set
-- Of the term that was read; nothing else runs. The replication id stays, so that the store that goes on alone gets a new epoch.
update deployment
   set store_term = store_term + 1, store_phase = 'normal', primary_id = null
 where store_term = :term and primary_id is not null
returning id;


-- name: begin_term
-- Of several controllers that begin with the same term, the one whose update is first has it: the others see no row. In one
-- term the primary changes once, with the epoch: who read the row before that has the wrong primary, and does not begin.
with changed as (
    update deployment
       set store_term = :term, store_phase = :phase
     where store_term = :after and store_epoch = :epoch and primary_id is not null
    returning id)
select pg_notify(:channel, '') from changed;


-- name: promote_member
-- Only in the term that fenced the others: a controller that stalled since then changes nothing. With a quorum the new epoch
-- continues those in which nothing was lost, the present one at least: an earlier version may have begun it.
with changed as (
    update deployment d
       set primary_id = m.id, store_epoch = d.store_term, store_phase = 'promote', replid = :replid,
           min_insync_replicas = coalesce(cast(:min_insync as integer), d.min_insync_replicas),
           lossless_since = case when not :has_quorum then d.store_term
                                 when d.lossless_until = d.store_epoch then d.lossless_since
                                 else d.store_epoch end,
           lossless_until = d.store_term
      from store_members m
     where d.store_term = :term and d.store_phase in ('fence', 'switch') and m.address = :primary
    returning d.id)
select pg_notify(:channel, '') from changed;


-- name: end_term
-- A term that ended, or was followed by another one, stays as it is.
with changed as (
    update deployment set store_phase = 'normal'
     where store_term = :term and store_phase <> 'normal'
    returning id)
select pg_notify(:channel, '') from changed;


-- name: advance_term
-- Locks the row until the change of members that follows is committed: nobody fences a set that is being changed.
update deployment set store_term = store_term + 1
 where store_term = :term and store_phase = 'normal' and primary_id is not null
returning store_term;


-- name: lock_catalog_version
-- Changes of the catalog commit in the order of their versions: whoever holds the row raises the version and commits. It
-- waits for the hot store meanwhile, so this is not the row of the deployment, which a change of the primary updates.
select version from catalog_version for update;


-- name: store_catalog_version
-- After lock_catalog_version, so it only rises.
update catalog_version set version = :version;


-- name: count_namespaces
-- Two that are made at one moment may both see the last place: the limit is for memory, not for a tenant.
select count(*) from namespaces;


-- name: lock_namespace
-- Stronger than what a foreign key holds: whoever adds something to the namespace has ended, or waits and then fails.
select name from namespaces where name = :name for update;


-- name: take_turns
-- Creations that are counted come one after another; those of others, which only refer to the row, do not wait.
select name from namespaces where name = :name for no key update;


-- name: count_queues
-- After take_turns: what it counts is committed, and nobody adds another one meanwhile. Queues of routes are not counted.
select count(*) from queues where namespace = :name and deleted_at_ms is null and not starts_with(name, 'route:');


-- name: count_streams
-- As count_queues.
select count(*) from streams where namespace = :name and deleted_at_ms is null;


-- name: namespace_holds
-- After lock_namespace, so nothing is added meanwhile. What is deleted and not swept yet has keys in the hot store or
-- files in the archive, which are found by these rows alone.
select (select count(*) from queues where namespace = :name and deleted_at_ms is null) as queues,
       (select count(*) from streams where namespace = :name and deleted_at_ms is null) as streams,
       (select count(*) from groups where namespace = :name) as groups,
       (select count(*) from webhooks where namespace = :name) as webhooks,
       (select count(*) from sources where namespace = :name) as sources,
       (select count(*) from mirrors where namespace = :name) as mirrors,
       (select count(*) from views where namespace = :name) as views,
       (select count(*) from queues where namespace = :name and deleted_at_ms is not null)
       + (select count(*) from streams where namespace = :name and deleted_at_ms is not null) as deleted_not_swept,
       (select count(distinct stream_id) from archive_shards where namespace = :name) as archives,
       (select count(*) from jobs
         where namespace = :name and state in ('queued', 'running', 'paused')) as open_jobs,
       (select count(*) from credentials
         where namespace = :name and revoked_at_ms is null
           and coalesce(expires_at_ms, 9223372036854775807)
               > cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as live_keys;


-- name: delete_namespace_moves
-- After lock_namespace.
delete from moves where namespace = :name;


-- name: delete_namespace_jobs
-- After lock_namespace, and when none is open.
delete from jobs where namespace = :name;


-- name: delete_namespace_settings
-- After lock_namespace.
delete from account_settings where namespace = :name;


-- name: delete_namespace_keys
-- After lock_namespace, and when none is good any more.
delete from credentials where namespace = :name;


-- name: delete_namespace
-- The foreign keys stand behind it.
delete from namespaces where name = :name;


-- name: weigh_namespace
-- One sweep at a time weighs. Whether `over` turned; a namespace whose limit went meanwhile stays as it is.
with before as (
  select name, over from namespaces where name = :name and quotas ? 'stored_bytes_max' for no key update
)
update namespaces n
   set stored_bytes = :stored_bytes, over = :over
  from before b
 where n.name = b.name
returning b.over <> n.over;


-- name: attend
-- Whoever finds that nobody was here for a while says since when we are back; the row lock makes them take turns.
update attendance
   set back_since_ms = case when time.now_ms - seen_ms > :outage_ms then time.now_ms else back_since_ms end,
       seen_ms = time.now_ms
  from (select coalesce(cast(:now_ms as bigint),
                        cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms) as time
 where seen_ms <= time.now_ms - :every_ms;


-- name: beat_members
-- Writes to members only, locked in their order, so that two of these cannot wait for each other; a member that
-- was removed meanwhile is not found. What is told may be old by a moment, also that a heartbeat counts which found
-- its member removed: the next one hears of it. `unsettled` only says who must look.
with asked as (
  select *
    from unnest(cast(:nths as int[]), cast(:namespaces as text[]), cast(:names as text[]),
                cast(:member_ids as text[]), cast(:generations as bigint[]))
         as asked(nth, namespace, name, member_id, generation)
), time as (
  select coalesce(cast(:now_ms as bigint),
                  cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms
), here as (
  select m.group_id, m.member_id
    from asked a
    join groups g on g.namespace = a.namespace and g.name = a.name
    join group_members m on m.group_id = g.group_id and m.member_id = a.member_id
   where not m.away and coalesce(a.generation, m.joined_generation) >= m.joined_generation
   order by m.group_id, m.member_id
     for update of m
), beaten as (
  update group_members m
     set heartbeat_ms = greatest(m.heartbeat_ms, time.now_ms)
    from time, (select distinct group_id, member_id from here) as h
   where m.group_id = h.group_id and m.member_id = h.member_id
)
select a.nth, columns(groups g),
       m.member_id is not null and not m.away as known,
       m.member_id is not null and not m.away
       and coalesce(a.generation, m.joined_generation) >= m.joined_generation as beaten,
       (select jsonb_agg(jsonb_build_array(s.shard, s.generation, s.committed, s.start, s.revoke_by_ms is not null)
                         order by s.shard)
          from group_shards s
         where s.group_id = g.group_id and s.owner = a.member_id) as places,
       g.lineage_mark <> (select max(h.index) + coalesce(max(h.closed_at_ms), 0)
                            from shards h
                           where h.stream_id = g.stream_id)
       or exists (select
                    from group_members o
                   where o.group_id = g.group_id and o.member_id <> a.member_id
                     and greatest(o.heartbeat_ms, att.back_since_ms)
                         + case when o.static then greatest(g.static_ms, g.session_ms) else g.session_ms end
                         <= time.now_ms)
       or exists (select
                    from group_shards s
                   where s.group_id = g.group_id and s.owner is not null
                     and (s.finished or s.revoke_by_ms <= time.now_ms)) as unsettled
  from asked a
 cross join time
 cross join attendance att
  join groups g on g.namespace = a.namespace and g.name = a.name
  join streams st on st.stream_id = g.stream_id and st.deleted_at_ms is null
  left join group_members m on m.group_id = g.group_id and m.member_id = a.member_id;


-- name: copy_offsets
-- One update for each row, which is looked at again once its lock is held: if it was granted anew or reset meanwhile, it
-- is not moved (G2), and it never moves back. Rows are locked in their order, so that two of these cannot wait for each
-- other.
with copied as (
  select *
    from unnest(cast(:group_ids as text[]), cast(:shards as int[]), cast(:generations as bigint[]),
                cast(:nexts as bigint[]), cast(:times_ms as bigint[]), cast(:ends as boolean[]))
         as copied(group_id, shard, generation, next, at_ms, ends)
), locked as (
  select s.group_id, s.shard, c.next, c.at_ms, c.ends
    from copied c
    join group_shards s on s.group_id = c.group_id and s.shard = c.shard
   where s.generation = c.generation
     and (s.committed is null or s.committed < c.next or (c.ends and not s.finished))
   order by s.group_id, s.shard
     for update of s
)
update group_shards s
   set committed = greatest(s.committed, l.next),
       committed_at_ms = greatest(s.committed_at_ms, l.at_ms),
       finished = s.finished or l.ends
  from locked l
 where s.group_id = l.group_id and s.shard = l.shard;


-- name: hold_group
-- Whoever changes a group's assignment holds its row until the end; then its members, then its shards, each in
-- their order. Heartbeats and copies of commits lock only some of those, in the same order.
select columns(groups g),
       coalesce(cast(:now_ms as bigint),
                cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms
  from groups g
  join streams st on st.stream_id = g.stream_id and st.deleted_at_ms is null
 where g.namespace = :namespace and g.name = :name
   for update of g;


-- name: store_group_starts
-- Rows are locked in their order, as copies of commits lock them; one that got a start or a commit meanwhile is left as
-- it is.
with locked as (
  select s.group_id, s.shard
    from group_shards s
   where s.group_id = :group_id and s.start is null and s.committed is null
   order by s.shard
     for update of s
)
update group_shards s
   set start = coalesce(a.start, 0)
  from locked l
  left join unnest(cast(:shards as int[]), cast(:starts as bigint[])) as a(shard, start) on a.shard = l.shard
 where s.group_id = l.group_id and s.shard = l.shard;


-- name: groups_to_settle
-- Nothing locks: whoever is told looks again, and finds perhaps that nothing is to be done.
select g.namespace, g.name
  from groups g
  join streams st on st.stream_id = g.stream_id and st.deleted_at_ms is null
 cross join attendance att
 cross join (select coalesce(cast(:now_ms as bigint),
                             cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms) as time
 where g.lineage_mark <> (select max(h.index) + coalesce(max(h.closed_at_ms), 0)
                            from shards h
                           where h.stream_id = g.stream_id)
    or exists (select
                 from group_members m
                where m.group_id = g.group_id
                  and greatest(m.heartbeat_ms, att.back_since_ms)
                      + case when m.static then greatest(g.static_ms, g.session_ms) else g.session_ms end
                      <= time.now_ms)
    or exists (select
                 from group_shards s
                where s.group_id = g.group_id and s.owner is not null
                  and (s.finished or s.revoke_by_ms <= time.now_ms))
 order by g.namespace, g.name;


-- name: closed_and_committed
-- Shards that take no more records, which a group has committed something of and has not finished.
select g.namespace, g.name, s.shard, s.committed
  from groups g
  join streams st on st.stream_id = g.stream_id and st.deleted_at_ms is null
  join group_shards s on s.group_id = g.group_id
  join shards h on h.stream_id = g.stream_id and h.index = s.shard
 where h.closed_at_ms is not null and h.expired_at_ms is null and not s.finished and s.committed is not null
 order by g.namespace, g.name, s.shard;


-- name: finish_shard
-- Only if nothing was committed or reset since it was looked at.
update group_shards s
   set finished = true
  from groups g
 where g.group_id = s.group_id and g.namespace = :namespace and g.name = :name
   and s.shard = :shard and s.committed = :committed;


-- name: read_by_all
-- How far every group of a stream has read each shard; none where a group has committed nothing yet. Commits only go on
-- meanwhile, and a reset back finds what is gone as it finds what is expired.
select s.shard, min(s.committed) as committed
  from groups g
  join group_shards s on s.group_id = g.group_id
 where g.stream_id = :stream_id
 group by s.shard
having count(s.committed) = (select count(*) from groups o where o.stream_id = :stream_id)
 order by s.shard;


-- name: archive_states
-- Nothing locks: files and marks move in one transaction, and this is one statement.
select a.stream_id, a.shard, a.log_id, a.start, a.archived, a.archived_at_ms,
       count(f.file_id) as files,
       coalesce(sum(f.records), 0)::bigint as records,
       coalesce(sum(f.file_bytes), 0)::bigint as file_bytes,
       coalesce(sum(f.log_bytes), 0)::bigint as log_bytes
  from archive_shards a
  left join archive_files f
    on f.stream_id = a.stream_id and f.shard = a.shard and f.superseded_at_ms is null
 where a.stream_id = :stream_id
 group by a.stream_id, a.shard
 order by a.shard;


-- name: archive_extents
-- Nothing locks: a file is in use or not, and marks only rise. Files are looked at in order, so that one is enough.
select a.shard, a.archived,
       case when f.first_offset is not null then greatest(a.start, f.first_offset) end as start
  from archive_shards a
  left join lateral (
    select first_offset
      from archive_files
     where stream_id = a.stream_id and shard = a.shard and superseded_at_ms is null
       and next_offset > a.start
     order by next_offset
     limit 1) as f on true
 where a.stream_id = :stream_id;


-- name: raise_archive_start
-- One row, which only rises; what is so already is not written again. Gives the row, whether it was or not.
with raised as (
  update archive_shards
     set start = :before
   where stream_id = :stream_id and shard = :shard and start < :before
  returning shard
)
select shard
  from archive_shards
 where stream_id = :stream_id and shard = :shard;


-- name: archive_files_to_delete
-- Nothing locks: a retired file is never in use again, and a stream that is gone never comes back.
select f.file_id, f.path
  from archive_files f
 where f.superseded_at_ms < :retired_before_ms
    or not exists (select from streams s where s.stream_id = f.stream_id and s.deleted_at_ms is null)
       and not exists (select from queues q where q.log_id = f.stream_id and q.deleted_at_ms is null)
 order by f.file_id
 limit :limit;


-- name: forget_gone_archives
-- Only shards whose stream is gone, and whose files are deleted.
delete from archive_shards a
 where not exists (select from streams s where s.stream_id = a.stream_id and s.deleted_at_ms is null)
   and not exists (select from queues q where q.log_id = a.stream_id and q.deleted_at_ms is null)
   and not exists (select from archive_files f where f.stream_id = a.stream_id and f.shard = a.shard);


-- name: crowded_hours
-- Nothing locks: whoever joins the files looks again whether all of them are in use.
select namespace, stream_id, shard, hour, min(first_offset) as first_offset
  from (select a.namespace, stream_id, shard, f.first_arrival_ms / :hour_ms as hour, f.first_offset
          from archive_files f join archive_shards a using (stream_id, shard)
         where f.superseded_at_ms is null
           and f.log_bytes < :small_bytes
           and (cast(:namespace as text) is null or a.namespace = :namespace)) as small
 where hour < :before_hour
 group by namespace, stream_id, shard, hour
having count(*) >= :files_min
 order by stream_id, shard, hour
 limit :limit;


-- name: submit_job
-- Whoever comes second inserts nothing: one job is open of a kind, namespace and subject, by the unique index.
insert into jobs (job_id, namespace, kind, subject, spec, state, wish, attempt, failures, attempts_max,
                  run_after_ms, progress, failure, created_at_ms)
select :job_id, :namespace, :kind, :subject, cast(:spec as jsonb), 'queued', 'none', 0, 0, :attempts_max,
       time.now_ms + :delay_ms, '{}', '', time.now_ms
  from (select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms) as time
    on conflict do nothing
returning columns(jobs);


-- name: end_orphaned_leases
-- Leases of running jobs that were not renewed for a while, and whose worker's lock nobody holds: its connection has
-- ended. The lock is tried for these alone, once the others are sorted out. A worker of an earlier version holds none,
-- and leaves the name of another one's in the row.
with time as (
  select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms
), overdue as materialized (
  select j.job_id, j.worker, j.lease_until_ms
    from jobs j, time
   where j.kind = any(:kinds) and j.state = 'running' and j.worker_lock = j.worker
     and j.lease_until_ms > time.now_ms and j.lease_until_ms - :lease_ms + :orphaned_ms <= time.now_ms
)
update jobs j
   set lease_until_ms = time.now_ms
  from overdue o, time
 where j.job_id = o.job_id and j.lease_until_ms = o.lease_until_ms
   and pg_try_advisory_xact_lock(hashtextextended('worker:' || o.worker, 0));


-- name: end_abandoned
-- Running jobs that nobody holds any more and that nobody should begin again. A row that another transaction has
-- locked is passed over: that one is taking it, or its owner is saying something. Without a worker, no attempt
-- can write.
with time as (
  select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms
), abandoned as (
  select j.job_id
    from jobs j, time
   where j.kind = any(:kinds) and j.state = 'running' and j.lease_until_ms <= time.now_ms
     and (j.wish <> 'none' or j.failures + 1 >= j.attempts_max)
     for update of j skip locked
)
update jobs j
   set state = case j.wish when 'cancel' then 'cancelled' when 'pause' then 'paused' else 'failed' end,
       wish = 'none',
       failures = j.failures + 1,
       failure = case j.wish when 'none' then :failure else j.failure end,
       worker = null,
       lease_until_ms = null,
       ended_at_ms = case j.wish when 'pause' then null else time.now_ms end
  from abandoned a, time
 where j.job_id = a.job_id;


-- name: claim_job
-- Many workers ask at once: each passes over what another has just locked, and looks at the row again once it has
-- the lock. A running job whose lease has run out is begun again, under a higher attempt, which is what stops
-- the old one; that its worker was lost counts as a failure.
with time as (
  select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms
), picked as (
  select j.job_id
    from jobs j, time
   where j.kind = any(:kinds)
     and (j.state = 'queued' and j.run_after_ms <= time.now_ms
          or j.state = 'running' and j.lease_until_ms <= time.now_ms
             and j.wish = 'none' and j.failures + 1 < j.attempts_max)
   order by j.run_after_ms, j.job_id
   limit 1
     for update of j skip locked
)
update jobs j
   set state = 'running',
       attempt = j.attempt + 1,
       failures = j.failures + case j.state when 'running' then 1 else 0 end,
       failure = case j.state when 'running' then :failure else j.failure end,
       worker = :worker,
       worker_lock = case when :holds_lock then :worker end,
       lease_until_ms = time.now_ms + :lease_ms,
       started_at_ms = coalesce(j.started_at_ms, time.now_ms)
  from picked p, time
 where j.job_id = p.job_id
returning columns(jobs j);


-- name: renew_lease
-- One row, and only for the attempt that runs: a later one, or an end, has changed what this looks for.
update jobs
   set lease_until_ms = cast(extract(epoch from clock_timestamp()) * 1000 as bigint) + :lease_ms,
       progress = coalesce(cast(:progress as jsonb), progress)
 where job_id = :job_id and attempt = :attempt and worker = :worker and state = 'running'
returning wish;


-- name: hold_job
-- Whoever changes a job's state holds its row until the end.
select columns(jobs j), time.now_ms, coalesce(j.state = 'running' and j.lease_until_ms > time.now_ms, false) as held
  from jobs j, (select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms) as time
 where j.job_id = :job_id
   for update of j;


-- name: hold_claim
-- The lock keeps the next attempt from beginning, and so from reading what is saved, before this is committed.
-- What an attempt saves is progress: the failures before it no longer count.
update jobs
   set failures = 0
 where job_id = :job_id and attempt = :attempt and worker = :worker and state = 'running'
returning job_id;


-- name: share_claim
-- As hold_claim, but transactions of the same attempt do not wait for one another.
select job_id
  from jobs
 where job_id = :job_id and attempt = :attempt and worker = :worker and state = 'running'
   for share;


-- name: save_parts
-- The job's row is held by then: see `hold_claim`.
insert into job_parts (job_id, part, position, done, counts)
select :job_id, p.part, p.position, p.done, p.counts
  from unnest(cast(:parts as text[]), cast(:positions as bigint[]), cast(:dones as boolean[]),
              cast(:counts as jsonb[])) as p(part, position, done, counts)
    on conflict (job_id, part) do update
   set position = excluded.position, done = excluded.done, counts = excluded.counts;


-- name: forget_jobs
-- What is over stays over; its parts go with it.
delete from jobs
 where job_id in (select job_id
                    from jobs
                   where ended_at_ms < cast(extract(epoch from clock_timestamp()) * 1000 as bigint)
                                       - case when kind = any(:call_kinds) then cast(:result_kept_ms as bigint) else :kept_ms end
                   limit :limit);


-- name: open_writes
-- Nothing locks: whoever goes on with a batch appends each of its records once, whoever else does.
select s.namespace, s.name, columns(writes w)
  from writes w join streams s using (stream_id)
 where not w.done and w.decided_at_ms < :decided_before_ms and s.deleted_at_ms is null
 order by w.decided_at_ms
 limit :limit;


-- name: beat_deliverer
-- A deliverer writes its own row and those that it holds. A lease that has run out and that nobody has taken is
-- renewed under its epoch: nobody else was its holder.
with time as (
  select coalesce(cast(:now_ms as bigint),
                  cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms
), seen as (
  insert into deliverers (deliverer, seen_ms)
  select :deliverer, time.now_ms from time
      on conflict (deliverer) do update set seen_ms = excluded.seen_ms
)
update webhooks w
   set lease_until_ms = time.now_ms + :lease_ms
  from time
 where w.holder = :deliverer and w.active
returning w.webhook_id, w.lease_epoch, w.version;


-- name: webhooks_to_share
-- Nothing locks: a share that is told a moment late is put right at the next beat.
with time as (
  select coalesce(cast(:now_ms as bigint),
                  cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms
)
select (select count(*) from deliverers d where d.seen_ms > time.now_ms - :lease_ms) as deliverers,
       (select count(*) from webhooks w where w.active) as active,
       (select count(*) from webhooks w where w.disabled_at_ms is not null) as disabled
  from time;


-- name: claim_webhooks
-- Many deliverers ask at once: each passes over what another has just locked. The epoch is what stops the former
-- holder's writes.
with time as (
  select coalesce(cast(:now_ms as bigint),
                  cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms
), free as (
  select w.webhook_id
    from webhooks w, time
   where w.active and (w.holder is null or w.lease_until_ms <= time.now_ms)
   order by w.webhook_id
   limit :wanted
     for update of w skip locked
)
update webhooks w
   set holder = :deliverer, lease_epoch = w.lease_epoch + 1, lease_until_ms = time.now_ms + :lease_ms,
       served_version = w.version
  from free f, time
 where w.webhook_id = f.webhook_id
returning columns(webhooks w);


-- name: webhook_in_force
-- Nothing locks: a lease taken from now on is of the version that is stored by now.
select w.holder is null or coalesce(w.served_version >= :version, false)
       or w.lease_until_ms <= coalesce(cast(:now_ms as bigint),
                                       cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as in_force
  from webhooks w
 where w.webhook_id = :webhook_id;


-- name: release_webhooks
-- Only what is still the deliverer's own.
update webhooks
   set holder = null
 where holder = :deliverer and webhook_id = any(:webhook_ids);


-- name: forget_deliverers
-- One that was only asleep writes its row anew.
delete from deliverers
 where deliverer = :deliverer
    or seen_ms < cast(extract(epoch from clock_timestamp()) * 1000 as bigint) - :kept_ms;


-- name: disable_webhook
-- Only by its holder: a former one knows an older configuration.
update webhooks
   set active = false, disabled_at_ms = :now_ms, disabled_because = :because, holder = null,
       health = cast(:health as jsonb)
 where webhook_id = :webhook_id and lease_epoch = :epoch;


-- name: store_health
-- Rows are locked in their order, so that two of these cannot wait for each other; only by their holders.
with told as (
  select t.webhook_id, t.health
    from unnest(cast(:webhook_ids as text[]), cast(:epochs as bigint[]), cast(:healths as text[]))
         as t(webhook_id, epoch, health)
    join webhooks w on w.webhook_id = t.webhook_id and w.lease_epoch = t.epoch
   order by w.webhook_id
     for update of w
)
update webhooks w
   set health = cast(t.health as jsonb)
  from told t
 where w.webhook_id = t.webhook_id;


-- name: log_deliveries
-- The webhooks' rows are locked against deletion, so that the log of one that goes stops no other's. An event is
-- named once. A delivery that succeeded stays so, whatever a later attempt that was asked for meets.
insert into webhook_deliveries as d
       (webhook_id, event_id, status, attempts, kept, first_at_ms, last_at_ms, next_at_ms, expires_at_ms,
        shard, place, event_at_ms, event_key, event_group, payload)
select e.webhook_id, e.event_id, e.status, e.attempts, cast(e.kept as jsonb), e.at_ms, e.at_ms, e.next_at_ms,
       e.at_ms + e.kept_ms, e.shard, e.place, e.event_at_ms, e.event_key, e.event_group, e.payload
  from unnest(cast(:webhook_ids as text[]), cast(:event_ids as text[]), cast(:statuses as text[]),
              cast(:attempts as int[]), cast(:kept as text[]), cast(:ats as bigint[]),
              cast(:next_ats as bigint[]), cast(:kept_ms as bigint[]), cast(:shards as int[]),
              cast(:places as bigint[]), cast(:event_ats as bigint[]), cast(:event_keys as text[]),
              cast(:event_groups as text[]), cast(:payloads as bytea[]))
       as e(webhook_id, event_id, status, attempts, kept, at_ms, next_at_ms, kept_ms, shard, place,
            event_at_ms, event_key, event_group, payload)
  join (select webhook_id from webhooks where webhook_id = any(:webhook_ids)
         order by webhook_id for key share) as w using (webhook_id)
 order by e.webhook_id, e.event_id
    on conflict (webhook_id, event_id) do update
   set status = case d.status when 'delivered' then d.status else excluded.status end,
       attempts = d.attempts + excluded.attempts,
       kept = jsonb_path_query_array(d.kept || excluded.kept, cast(:last_of_them as jsonpath)),
       last_at_ms = excluded.last_at_ms,
       next_at_ms = case d.status when 'delivered' then null else excluded.next_at_ms end,
       expires_at_ms = excluded.expires_at_ms,
       payload = coalesce(excluded.payload, d.payload);


-- name: forget_deliveries
-- One that is tried again meanwhile gets a later time, and is looked at again once its lock is held.
delete from webhook_deliveries
 where (webhook_id, event_id) in (select webhook_id, event_id
                                    from webhook_deliveries
                                   where expires_at_ms <= :now_ms
                                   limit :limit)
   and expires_at_ms <= :now_ms;


-- name: note_uses
-- Rows are locked in their order, so that two of these cannot wait for each other. One that another process has
-- noted within a minute is left alone.
with told as (
  select t.id, t.used_at_ms
    from unnest(cast(:ids as text[]), cast(:used_at_ms as bigint[])) as t(id, used_at_ms)
    join credentials c on c.id = t.id
   where c.last_used_at_ms is null or c.last_used_at_ms <= t.used_at_ms - :apart_ms
   order by c.id
     for update of c
)
update credentials c
   set last_used_at_ms = t.used_at_ms
  from told t
 where c.id = t.id;


-- name: note_session_uses
-- As note_uses.
with told as (
  select t.digest, t.used_at_ms
    from unnest(cast(:digests as bytea[]), cast(:used_at_ms as bigint[])) as t(digest, used_at_ms)
    join sessions s on s.digest = t.digest
   order by s.digest
     for update of s
)
update sessions s
   set used_at_ms = greatest(s.used_at_ms, t.used_at_ms)
  from told t
 where s.digest = t.digest;


-- name: forget_credentials
-- What ended does not begin again, so nobody minds which process forgets it; one that another does is skipped.
delete from credentials
 where id in (select id
                from credentials
               where namespace = :namespace
                 and least(revoked_at_ms, expires_at_ms) <= :ended_before_ms
               limit :limit
                 for update skip locked);


-- name: redeem_tickets
-- A row is gone for whoever comes second, in whatever process: they wait for the first to commit. Rows are locked
-- in their order, so that two of these cannot wait for each other.
with found as (
  select digest
    from tickets
   where digest = any(cast(:digests as bytea[])) and expires_at_ms > :now_ms
   order by digest
     for update
)
delete from tickets t
 using found
 where t.digest = found.digest
returning t.digest, t.credential_id, t.name, t.namespace, t.grants, t.rates, t.ends_at_ms;


-- name: forget_tickets
-- Those that are over; one that another process forgets is skipped.
delete from tickets
 where digest in (select digest from tickets where expires_at_ms <= :now_ms limit :limit for update skip locked);


-- name: forget_sessions
-- Those that are over; one that another process forgets, or that is used right now, is skipped.
delete from sessions
 where digest in (select digest from sessions
                   where used_at_ms <= :used_before_ms or created_at_ms <= :created_before_ms
                   limit :limit
                     for update skip locked);


-- name: take_turn_in_audit
-- Until its transaction ends: entries have one order, and the next statement sees the last of those before.
select pg_advisory_xact_lock(:key);

-- name: postgres_figures
-- What an operator looks at first. Statistics views: nothing is locked, and what may not be seen counts as nothing.
select current_setting('server_version') as version,
       extract(epoch from clock_timestamp() - pg_postmaster_start_time())::bigint as uptime_s,
       pg_database_size(current_database()) as database_bytes,
       (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
       current_setting('max_connections')::int as connections_max,
       coalesce((select extract(epoch from max(clock_timestamp() - xact_start))
                 from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()), 0)::float
           as longest_transaction_s;

-- name: measured_queues
-- Nothing locks: a queue that is made or deleted meanwhile is measured a step later, or once more.
select namespace, name, log_id,
       array(select p.log_id from queue_partitions p where p.queue_id = queues.log_id) as others
  from queues
 where deleted_at_ms is null and (namespace, name) > (:after_namespace, :after_name)
 order by namespace, name
 limit :limit;


-- name: measured_streams
-- As measured_queues. Of each shard that has not expired: [index, log, whether it takes records, where its archive
-- begins and ends, both null when it is not to be archived].
select t.namespace, t.name, t.stream_id,
       (select jsonb_agg(jsonb_build_array(
                 s.index, s.log_id,
                 s.closed_at_ms is null and not exists (
                   select from shards p
                    where p.stream_id = s.stream_id and p.index = any(s.parents) and p.closed_at_ms is null),
                 a.start, a.archived) order by s.index)
          from shards s
          left join archive_shards a
            on a.stream_id = s.stream_id and a.shard = s.index and (t.spec->>'archive')::boolean
         where s.stream_id = t.stream_id and s.expired_at_ms is null) as shards
  from streams t
 where t.deleted_at_ms is null and (t.namespace, t.name) > (:after_namespace, :after_name)
 order by t.namespace, t.name
 limit :limit;


-- name: measured_groups
-- As measured_queues. Of each shard: [index, committed offset or null, when that was, whether it is read to its end].
select g.namespace, g.name, g.group_id, g.stream_id, (g.spec->>'start_time_ms')::bigint as start_time_ms,
       (select count(*) from group_members m where m.group_id = g.group_id and not m.away) as members,
       (select jsonb_agg(jsonb_build_array(s.shard, s.committed, s.committed_at_ms, s.finished) order by s.shard)
          from group_shards s
         where s.group_id = g.group_id) as shards
  from groups g
 where g.stream_id = any(:stream_ids)
 order by g.namespace, g.name;


-- name: measured_group_names
-- As measured_queues.
select g.namespace, g.name
  from groups g
  join streams t on t.stream_id = g.stream_id
 where t.deleted_at_ms is null;


-- name: archived_since
-- Nothing locks: a file that is replaced meanwhile has the same records. When the file came that has each place.
select w.nth,
       (select f.first_arrival_ms
          from archive_files f
         where f.stream_id = w.stream_id and f.shard = w.shard and f.superseded_at_ms is null
           and f.next_offset > w.place
         order by f.first_offset
         limit 1) as since_ms
  from unnest(cast(:nths as integer[]), cast(:stream_ids as text[]), cast(:shards as integer[]),
              cast(:places as bigint[])) as w (nth, stream_id, shard, place);


-- name: every_table
-- Nothing locks: the catalogue is read in the transaction that copies.
select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
 group by c.relname
 order by c.relname;


-- name: every_reference
-- As every_table. A table that refers to itself is filled by one COPY, which is checked at its end.
select distinct referring.relname::text as referring, referred.relname::text as referred
  from pg_constraint k
  join pg_class referring on referring.oid = k.conrelid
  join pg_class referred on referred.oid = k.confrelid
 where k.contype = 'f' and k.connamespace = current_schema()::regnamespace
   and k.conrelid <> k.confrelid;


-- name: namespaces_before_store
-- Nothing locks: a job or a view that comes meanwhile is not in this moment.
select namespace from jobs union select namespace from views;


-- name: paths_of_the_archive
-- As namespaces_before_store. Files that were replaced stay for their readers, and are named so long.
select path from archive_files;


-- name: paths_put_aside
-- As namespaces_before_store. What is appended of an open batch is not needed again.
select '_staged/' || s.namespace || '/' || w.stream_id || '/' || unnest(w.staged[w.parts + 1:])
  from writes w join streams s using (stream_id)
 where not w.done;


-- name: every_namespace
-- As namespaces_before_store.
select name from namespaces;


-- name: acquire_lease
-- One statement, whose row lock decides between candidates: an insert that conflicts sees the row as it was committed.
-- The time is that of Postgres. No row is returned while another holder's lease lasts.
insert into leases as current (name, holder, fence, expires_at_ms)
select :name, :holder, 1, time.now_ms + cast(:lease_ms as bigint)
  from (select coalesce(cast(:now_ms as bigint),
                        cast(extract(epoch from clock_timestamp()) * 1000 as bigint)) as now_ms) as time
    on conflict (name) do update
   set holder = excluded.holder,
       expires_at_ms = excluded.expires_at_ms,
       fence = current.fence + case when current.holder = excluded.holder
                                     and current.expires_at_ms > excluded.expires_at_ms - cast(:lease_ms as bigint)
                                    then 0 else 1 end
 where current.holder = excluded.holder
    or current.expires_at_ms <= excluded.expires_at_ms - cast(:lease_ms as bigint)
returning fence;


-- name: lease_of
-- Nothing locks: a candidate that is told of a lease which has ended since tries again.
select holder, fence,
       greatest(0, expires_at_ms - coalesce(cast(:now_ms as bigint),
                                            cast(extract(epoch from clock_timestamp()) * 1000 as bigint))) as remaining_ms
  from leases
 where name = :name;


-- name: delete_mirror_offsets
-- Nothing else locks: only the report of the mirror's puller, which holds the mirror's row, changes its offset tables.
delete from mirror_offsets m
 using unnest(cast(:streams as text[]), cast(:origin_ids as text[]), cast(:shards as int[]),
              cast(:target_shards as int[]), cast(:origin_offsets as bigint[]), cast(:target_offsets as bigint[]))
       as gone(stream, origin_id, shard, target_shard, origin_offset, target_offset)
 where m.mirror_id = :mirror_id and m.stream = gone.stream and m.origin_id = gone.origin_id and m.shard = gone.shard
   and m.target_shard = gone.target_shard and m.origin_offset = gone.origin_offset;


-- name: put_mirror_offsets
-- The join leaves out shards that were forgotten meanwhile; their rows are locked by the foreign key, after the mirror's.
insert into mirror_offsets (mirror_id, stream, origin_id, shard, target_shard, origin_offset, target_offset)
select s.mirror_id, s.stream, s.origin_id, s.shard, new.target_shard, new.origin_offset, new.target_offset
  from unnest(cast(:streams as text[]), cast(:origin_ids as text[]), cast(:shards as int[]),
              cast(:target_shards as int[]), cast(:origin_offsets as bigint[]), cast(:target_offsets as bigint[]))
       as new(stream, origin_id, shard, target_shard, origin_offset, target_offset)
  join mirror_shards s
    on s.mirror_id = :mirror_id and s.stream = new.stream and s.origin_id = new.origin_id and s.shard = new.shard
    on conflict (mirror_id, stream, origin_id, shard, target_shard, origin_offset) do update
   set target_offset = excluded.target_offset;


-- name: share_route_table
-- Waits for a change in progress, which has set the fences of the topic's logs already; publishers do not wait for one another.
select stream_id, routes_version
  from streams
 where stream_id = :stream_id and deleted_at_ms is null
   for share;


-- name: lock_route_table
-- One change of a topic's routes, or repair of its fences, at a time; publishers wait for its end before they read the table.
select stream_id, routes_version
  from streams
 where stream_id = :stream_id and deleted_at_ms is null
   for no key update;


-- name: topic_positions
-- One statement, so that a report between two of them is not half read. Rows without a buffer are the router's own.
select stream_id, null as buffer, shard, position
  from topic_shards
 where stream_id = any(cast(:stream_ids as text[]))
union all
select stream_id, buffer, shard, position
  from route_lags
 where stream_id = any(cast(:stream_ids as text[]))
union all
select stream_id, null, null, expired_unrouted
  from streams
 where stream_id = any(cast(:stream_ids as text[]))
 order by buffer nulls first, shard;


-- name: topic_reports
-- Read before the positions: a report that comes in between makes the next save of the reader fail.
select distinct report
  from topic_shards
 where stream_id = :stream_id;


-- name: save_topic_positions
-- Under `hold_name` for the topic: no row comes back if another report, or a later router, has stored any, also of other shards.
-- Earlier versions do not hold the name: a row that they store meanwhile is checked under its lock.
insert into topic_shards as s (stream_id, shard, position, fence, report)
select :stream_id, p.shard, p.position, :fence, :report
  from unnest(cast(:shards as integer[]), cast(:positions as bigint[])) as p (shard, position)
 where not exists (
       select from topic_shards
        where stream_id = :stream_id
          and (fence > :fence or report <> all(cast(:expected as bigint[])))
       )
    on conflict (stream_id, shard) do update
   set position = excluded.position, fence = excluded.fence, report = excluded.report
 where s.fence <= excluded.fence and s.report = any(cast(:expected as bigint[]))
returning s.shard;


-- name: delete_former_topic_positions
-- After `save_topic_positions` in its transaction, whose rows are locked: no other router has stored these.
with lags as (delete from route_lags where stream_id = :stream_id)
delete from topic_shards
 where stream_id = :stream_id and shard <> all(cast(:shards as integer[]));


-- name: add_route_counts
-- The router's lease was checked in this transaction, so no other router adds to these rows.
update routes r
   set delivered = r.delivered + c.delivered, dropped = r.dropped + c.dropped,
       dead_lettered = r.dead_lettered + c.dead_lettered, shadowed = r.shadowed + c.shadowed,
       failure = coalesce(c.failure, r.failure)
  from unnest(
         cast(:numbers as bigint[]), cast(:delivered as bigint[]), cast(:dropped as bigint[]),
         cast(:dead_lettered as bigint[]), cast(:shadowed as bigint[]), cast(:failures as text[])
       ) as c (number, delivered, dropped, dead_lettered, shadowed, failure)
 where r.stream_id = :stream_id and r.number = c.number;


-- name: lagging_routes
-- A snapshot: a buffer that catches up meanwhile has no lag when its route is reported. A key with `#` names a revision.
with buffers as (
  select distinct s.stream_id, s.name as topic, l.buffer
    from route_lags l
    join streams s on s.stream_id = l.stream_id and s.namespace = :namespace and s.deleted_at_ms is null
), lagging as (
  select b.topic, b.stream_id, cast(split_part(b.buffer, '#', 2) as bigint) as number
    from buffers b
   where position('#' in b.buffer) > 0
   union
  select b.topic, b.stream_id, r.number
    from buffers b
    join routes r on r.stream_id = b.stream_id
     and (
           b.buffer = coalesce(
             'queue:' || (r.spec #>> '{target,queue}'), 'stream:' || (r.spec #>> '{target,stream}'),
             'topic:' || (r.spec #>> '{target,topic}'), 'url:' || r.name
           )
           or exists (
             select 1
               from jsonb_array_elements(r.spec #> '{target,spread}') m
              where b.buffer = coalesce('queue:' || (m ->> 'queue'), 'stream:' || (m ->> 'stream'), 'topic:' || (m ->> 'topic'))
           )
         )
     and r.spec ->> 'mode' is distinct from 'shadow'
)
select g.topic, columns(routes r)
  from lagging g
  join routes r on r.stream_id = g.stream_id and r.number = g.number
 where r.until_offsets is null and not r.removed and not cast(r.spec ->> 'paused' as boolean)
   and (r.history is null or r.history_done)
 order by r.failure = '', g.topic, r.name
 limit :limit;


-- name: delete_route_queues
-- Under the lock of the topic's name, so no route gets one meanwhile. They have one log each. A row stays for the sweeper.
with deleted as (
  update queues
     set deleted_at_ms = :now_ms
   where namespace = :namespace and name between :first and :last and deleted_at_ms is null
  returning name, log_id
), closed as (
  delete from logs where log_id in (select log_id from deleted)
)
select name, log_id, pg_notify(:channel, 'queue:' || cast(:namespace as text) || '/' || name)
  from deleted;


-- name: delete_route_webhooks
-- As delete_route_queues. A deliverer that has the lease of one stops when it is notified, on the channel of webhooks.
with deleted as (
  delete from webhooks where namespace = :namespace and name between :first and :last returning webhook_id
)
select pg_notify('millstream_webhooks', webhook_id) from deleted;


-- name: unused_route_queues
-- A snapshot: each is checked again under the lock of its topic.
select q.namespace, q.name
  from queues q
 where q.name > 'route:' and q.name < 'route;' and q.deleted_at_ms is null
   and (q.namespace, q.name) > (:namespace, :name)
   and not exists (
         select from routes r
           join streams s on s.stream_id = r.stream_id and s.namespace = q.namespace and s.deleted_at_ms is null
          where r.spec #>> '{target,url}' is not null and not r.removed
            and q.name = 'route:' || case when s.name like 'topic:%' then substr(s.name, 7) else 'stream:' || s.name end
                         || case when position('.' in s.name) > 0 then ':' else '.' end || r.name)
 order by q.namespace, q.name
 limit :limit;


-- name: lock_running_view_revision
-- The view before its revision, as those who change it: the view is locked where it is read, and the revision above the join. Each lock
-- looks at the row again after it has waited, so a view that was paused meanwhile, or a revision that was deleted, gives no row.
with v as materialized (
  select spec -> 'into' as into, cast(spec ->> 'history_ms' as bigint) as history_ms
    from views
   where view_id = :view_id and not cast(spec ->> 'paused' as boolean)
     for share
)
select columns(view_revisions r), v.into, v.history_ms
  from v cross join view_revisions r
 where r.revision_id = :revision_id and r.state <> 'deleted'
   for update of r;


-- name: view_sessions
-- A snapshot, before a batch that began there: the commit sees whether another one came between. The end of a session is the last
-- part of its key, encoded as its start.
select r.key, r.state, r.sources, r.window_end_ms
  from unnest(cast(:others as bytea[]), cast(:starts as bytea[]), cast(:ends as bytea[])) as s(others, start, end_)
 cross join lateral (
   (select * from view_rows
     where revision_id = :revision_id and key >= s.others and key < s.start
     order by key desc
     limit 1)
   union all
   select * from view_rows
    where revision_id = :revision_id and key >= s.start and key < s.end_
 ) r
 where substring(r.key from length(r.key) - length(s.start) + length(s.others) + 1)
       >= substring(s.start from length(s.others) + 1);


-- name: put_view_rows
-- The revision's row is locked, so nobody else writes its rows. A row that was inserted has no xmax.
with changed as (
  insert into view_rows (revision_id, key, output, state, window_end_ms, sources, batch, changed_at_ms)
  select :revision_id, c.key, cast(c.output as json), c.state, c.window_end_ms, c.sources, :batch, :now_ms
    from unnest(cast(:keys as bytea[]), cast(:outputs as text[]), cast(:states as text[]),
                cast(:window_ends as bigint[]), cast(:sources as text[]))
         as c(key, output, state, window_end_ms, sources)
      on conflict (revision_id, key) do update
     set output = excluded.output, state = excluded.state, window_end_ms = excluded.window_end_ms,
         sources = excluded.sources, batch = excluded.batch, changed_at_ms = excluded.changed_at_ms
  returning xmax = 0 as is_new
)
select count(*) filter (where is_new) from changed;


-- name: keep_view_versions
-- As put_view_rows, before it: the rows as they are until a batch.
insert into view_row_versions (revision_id, key, until_batch, since_batch, output, window_end_ms)
select revision_id, key, :batch, batch, output, window_end_ms
  from view_rows
 where revision_id = :revision_id and key = any(:keys) and output is not null;


-- name: expire_view_rows
-- As put_view_rows. A row that this batch has put was never read, so it has no version.
with expired as (
  delete from view_rows
   where revision_id = :revision_id
     and key in (select key
                   from view_rows
                  where revision_id = :revision_id and window_end_ms <= :until_ms
                  order by window_end_ms
                  limit :limit)
  returning *
), versions as (
  insert into view_row_versions (revision_id, key, until_batch, since_batch, output, window_end_ms)
  select revision_id, key, :batch, batch, output, window_end_ms
    from expired
   where :keeps and batch < :batch and output is not null
)
select key, window_end_ms, case when :shows then cast(output as text) end as output from expired;


-- name: final_view_rows
-- As put_view_rows. The row that an index of windows has after a position, in its order.
select key, window_end_ms, cast(output as text) as output
  from view_rows
 where revision_id = :revision_id
   and window_end_ms <= :until_ms
   and (window_end_ms, key) > (:after_ms, cast(:after_key as bytea))
 order by window_end_ms, key
 limit :limit;


-- name: next_view_windows
-- A snapshot: the next batch looks again.
select (select min(window_end_ms) from view_rows where revision_id = :revision_id) as oldest_ms,
       (select min(window_end_ms) from view_rows
         where revision_id = :revision_id and window_end_ms > :after_ms) as next_ms;


-- name: begin_view_back_test
-- One statement has one snapshot, so the copied rows are those of the copied progress. Two attempts at the job have the same ids: one of
-- them waits for the other, and inserts nothing.
with active as (
  select * from view_revisions where view_id = :view_id and state = 'active'
), begun as (
  insert into view_revisions (revision_id, view_id, namespace, stream, stream_id, number, query, plan, state, progress, failure, failures,
                              is_stopped, is_rebuild, report)
  select :revision_id, view_id, namespace, stream, stream_id, number, cast(:query as jsonb), cast(:plan as jsonb), 'back_test',
         cast(:progress as jsonb), '', 0, false, false, cast(:report as jsonb)
    from active
   union all
  select :snapshot_id, view_id, namespace, stream, stream_id, number, query, plan, 'snapshot', progress, '', 0, false, false, null
    from active
      on conflict (revision_id) do nothing
  returning revision_id
)
insert into view_rows (revision_id, key, output, state, window_end_ms, batch, changed_at_ms)
select b.revision_id, r.key, r.output, '', r.window_end_ms, r.batch, r.changed_at_ms
  from begun b
 cross join active a
  join view_rows r on r.revision_id = a.revision_id
 where b.revision_id = :snapshot_id and r.output is not null;


-- name: end_view_back_tests
-- Their ids begin with that of the job.
update view_revisions v
   set state = 'deleted'
 where v.state in ('back_test', 'snapshot')
   and not exists (select from jobs j
                    where j.job_id = split_part(v.revision_id, '-', 1) and j.state in ('queued', 'running', 'paused'));


-- name: differences_of_view_revisions
-- Both revisions' rows are locked: the one by its own lock, the other by the claim of the scan, which alone writes both.
select coalesce(n.key, o.key) as key, coalesce(n.window_end_ms, o.window_end_ms) as window_end_ms,
       cast(o.output as text) as before, cast(n.output as text) as output
  from (select * from view_rows where revision_id = :before) o
  full join (select * from view_rows where revision_id = :after) n on n.key = o.key
 where cast(n.output as text) is distinct from cast(o.output as text)
 order by 1;


-- name: advance_view_revision
-- The revision's row is locked. One statement, since each batch of each view makes it.
with advanced as (
  update view_revisions
     set progress = cast(:progress as jsonb), failures = 0, failure = ''
   where revision_id = :revision_id
), added as (
  insert into view_batches (revision_id, batch, before, after, joined, watermark_ms, counts, rows, milliseconds, at_ms, versions)
  values (:revision_id, :batch, cast(:before as jsonb), cast(:after as jsonb), cast(:joined as jsonb), :watermark_ms, cast(:counts as jsonb),
          :rows, :milliseconds, :at_ms, :versions)
), forgotten as (
  delete from view_batches
   where revision_id = :revision_id
     and batch in (select batch from view_batches where revision_id = :revision_id and batch <= :oldest order by batch limit :limit)
)
select pg_notify(:channel, :view_id);


-- name: enqueue_view_messages
-- The revision's row is locked, so its sequences rise.
with enqueued as (
  insert into view_outbox (view_id, sink, revision, sequence, batch, change, key, output, before)
  select :view_id, m.sink, :revision, :first + m.nth - 1, :batch, m.change, m.key, m.output, m.before
    from unnest(cast(:sinks as text[]), cast(:changes as text[]), cast(:keys as text[]),
                cast(:outputs as text[]), cast(:befores as text[]))
         with ordinality as m(sink, change, key, output, before, nth)
  returning sink
)
insert into view_sinks as s (view_id, sink, pending, sent, failure)
select :view_id, sink, count(*), 0, '' from enqueued group by sink order by sink
    on conflict (view_id, sink) do update set pending = s.pending + excluded.pending;


-- name: pending_view_messages
-- A snapshot: a message that comes meanwhile has a greater sequence, and is sent by the next call.
select revision, sequence, batch, change, key, output, before
  from (select o.*, sum(octet_length(coalesce(output, '')) + octet_length(coalesce(before, '')))
                      over (order by revision, sequence rows between unbounded preceding and 1 preceding) as bytes_before
          from (select *
                  from view_outbox
                 where view_id = :view_id and sink = :sink
                 order by revision, sequence
                 limit :limit) o) m
 where coalesce(bytes_before, 0) < :bytes_max
 order by revision, sequence;


-- name: settle_view_messages
-- A message that is enqueued meanwhile has a greater sequence. A message that is sent twice is counted once.
with settled as (
  delete from view_outbox
   where view_id = :view_id and sink = :sink and (revision, sequence) <= (:revision, :sequence)
  returning 1
)
update view_sinks s
   set pending = s.pending - n.settled, sent = s.sent + n.settled, failure = ''
  from (select count(*) as settled from settled) n
 where s.view_id = :view_id and s.sink = :sink;


-- name: view_sinks_behind
-- A snapshot: a sink that accepts its messages meanwhile is named once more.
select v.name as view, columns(view_sinks s)
  from views v
  join view_sinks s using (view_id)
 where v.namespace = :namespace and not cast(v.spec ->> 'paused' as boolean)
   and (s.failure <> '' or s.pending >= :pending)
 order by s.failure = '', s.pending desc, v.name, s.sink
 limit :limit;


-- name: delete_removed_view_sinks
-- The view's row is locked, and a batch that enqueues messages shares that lock.
with removed as (
  delete from view_sinks where view_id = :view_id and sink <> all(cast(:sinks as text[]))
  returning sink
)
delete from view_outbox where view_id = :view_id and sink in (select sink from removed);


-- name: delete_view_rows
-- A deleted revision gets no rows: whoever commits a batch locks the revision, and sees its state.
delete from view_rows
 where (revision_id, key) in (select r.revision_id, r.key
                                from view_revisions v
                                join view_rows r using (revision_id)
                               where v.state = 'deleted'
                               limit :limit);


-- name: delete_view_revisions
-- As delete_view_rows.
delete from view_revisions v
 where v.state = 'deleted'
   and not exists (select from view_rows r where r.revision_id = v.revision_id)
   and not exists (select from view_row_versions r where r.revision_id = v.revision_id);


-- name: keep_view_history
-- The view is locked, so no batch commits: history begins at the last one, and what was kept before is deleted by trim_view_history.
update view_revisions
   set history_batch = case when :keeps then coalesce(history_batch, cast(progress ->> 'batch' as bigint)) end
 where view_id = :view_id and state = 'active';


-- name: advance_view_history
-- A read looks at the first batch in the snapshot of its rows. A batch that commits meanwhile stores versions that end after it. The
-- batches of a view are searched by number only while it has too many versions.
with history as (
  select r.revision_id, r.history_batch,
         (select b.batch
            from view_batches b
           where b.revision_id = r.revision_id
             and b.at_ms <= :now_ms - cast(v.spec ->> 'history_ms' as bigint)
           order by b.at_ms desc, b.batch desc
           limit 1) as by_time,
         (select min(b.batch)
            from view_batches b
           where b.revision_id = r.revision_id
             and b.batch > r.history_batch
             and b.versions >= cast(r.progress ->> 'versions' as bigint) - :versions_max
             and cast(r.progress ->> 'versions' as bigint) - :versions_max
                 > coalesce((select f.versions from view_batches f where f.revision_id = r.revision_id and f.batch = r.history_batch), 0)
         ) as by_number
    from view_revisions r
    join views v using (view_id)
   where r.state = 'active' and r.history_batch is not null
)
update view_revisions r
   set history_batch = greatest(h.by_time, h.by_number)
  from history h
 where h.revision_id = r.revision_id and r.history_batch = h.history_batch
   and greatest(h.by_time, h.by_number) > h.history_batch;


-- name: trim_view_history
-- As advance_view_history: nobody reads what ended at the first batch or before, and only active revisions have history.
delete from view_row_versions
 where (revision_id, key, until_batch)
    in (select v.revision_id, v.key, v.until_batch
          from view_revisions r,
               lateral (select revision_id, key, until_batch
                          from view_row_versions
                         where revision_id = r.revision_id
                           and until_batch <= case when r.state = 'active' and r.history_batch is not null then r.history_batch
                                                   else 9223372036854775807 end
                         limit :limit) v
         limit :limit);


-- name: view_streams
-- A snapshot: a scan that finds no view ends.
select distinct v.namespace, v.stream
  from view_revisions v
  join views w using (view_id)
 where v.state in ('active', 'building', 'former') and not v.is_stopped and not cast(w.spec ->> 'paused' as boolean)
   and not exists (select from jobs j
                    where j.kind = :kind and j.namespace = v.namespace and j.subject = v.stream
                      and j.state in ('queued', 'running', 'paused'));
