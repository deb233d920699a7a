from enum import StrEnum


class AlertKind(StrEnum):
    ARCHIVE_BEHIND = "archive_behind"
    CHECK_FAILED = "check_failed"
    DEAD_LETTERS = "dead_letters"
    DEAD_LETTERS_OLD = "dead_letters_old"
    DEAD_LETTER_QUEUE = "dead_letter_queue"
    DEAD_LETTER_QUEUE_OLD = "dead_letter_queue_old"
    DELIVERER_MISSING = "deliverer_missing"
    GROUP_BEHIND = "group_behind"
    GROUP_EXPIRING = "group_expiring"
    GROUP_PAUSED = "group_paused"
    GROUP_QUIET = "group_quiet"
    GROUP_STALLED = "group_stalled"
    JOBS_UNSERVED = "jobs_unserved"
    JOB_FAILED = "job_failed"
    OBJECT_FAILING = "object_failing"
    PROCESS_OVERLOADED = "process_overloaded"
    QUEUE_BEHIND = "queue_behind"
    QUEUE_EXPIRING = "queue_expiring"
    QUEUE_FULL = "queue_full"
    QUEUE_PARKED = "queue_parked"
    QUEUE_PAUSED = "queue_paused"
    QUEUE_QUIET = "queue_quiet"
    QUEUE_STALLED = "queue_stalled"
    SOURCE_BLOCKED = "source_blocked"
    SOURCE_FULL = "source_full"
    SOURCE_REJECTING = "source_rejecting"
    STORE_FULL = "store_full"
    STORE_NEARLY_FULL = "store_nearly_full"
    SWEEPER_MISSING = "sweeper_missing"
    WEBHOOK_BLOCKED = "webhook_blocked"
    WEBHOOK_DISABLED = "webhook_disabled"
    WEBHOOK_FAILING = "webhook_failing"

    def __str__(self) -> str:
        return str(self.value)
