"""`TransactionManager`: the state of a transactional producer, and the next request to send.

Sans-IO: times are passed in, in seconds of the client's clock. The methods get events; `state`,
`next_request` and `not_before` have the result. There are two transaction versions:

- In version 1, `AddPartitions` and `AddOffsets` are sent before the first Produce to a partition
  and the first commit of a group's offsets. If a batch that may have used a sequence number has
  failed, InitProducerId bumps the epoch before the next transaction (KIP-360).
- In version 2, leaders and group coordinators add partitions, and the response to EndTxn has a
  bumped epoch (KIP-890). `DescribeTransaction` is sent before the first write of a transaction that
  follows another transaction within milliseconds; see `transaction_completion`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from ....wire.errors import KprotoError
from ...commits.transactional_commit import TransactionalCommit
from ...core.retry import Attempts, Remedy, remedy_of
from ...metadata.cluster import TopicPartition
from ...settings import ClientSettings
from ..errors import (
    FatalTransactionError,
    FencedTransactionError,
    TransactionAbortedError,
    TransactionError,
)
from ..producer_state import NO_PRODUCER_ID, ProducerIdAndEpoch
from .fatal_reasons import (
    EPOCH_LOST,
    FENCED_ITSELF,
    MAYBE_COMMITTED,
    NOT_ABORTED,
    error_name,
    fatal_reason,
    may_be_done,
)
from .transaction_completion import (
    TransactionCompletion,
    completion_backoff_s,
    concurrent_backoff_s,
)
from .transaction_errors import ErrorAction, TransactionApi, action_of
from .transaction_requests import (
    EPOCH_BUMP_VERSION,
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    DescribeTransaction,
    EndTransaction,
    InitProducerId,
    TransactionRequest,
    TransactionResult,
    api_of,
)
from .transaction_state import TransactionState, check_transition

__all__ = ["TransactionManager"]

_S = TransactionState

#: The states of a transaction without an error, to which partitions and offsets can be added.
_ACCEPTING: Final = (_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION)

#: The states in which EndTxn is sent once all batches are complete.
_ENDING: Final = (_S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION)

#: The actions after which a request is sent again.
_RETRIES: Final = (ErrorAction.RETRY, ErrorAction.RETRY_SOON, ErrorAction.FIND_COORDINATOR)

#: The actions, the worst last.
_RANKS: Final = (*_RETRIES, ErrorAction.ABORTABLE, ErrorAction.FATAL, ErrorAction.FENCED)


def _ignore() -> None:
    """Does nothing."""


class TransactionManager:
    """Decides on the requests of a producer with a transactional id, one request after the other.

    `identity` is the present producer id and epoch, for all partitions. `error` is the cause of
    ABORTABLE_ERROR and FATAL_ERROR; in UNINITIALIZED it is the error of a failed InitProducerId.
    The next request may be sent from `not_before` on, in seconds of the clock.
    `must_find_coordinator` is True if the coordinator must first be looked up again. `is_committed`
    is True from the commit of a transaction to the begin of the next one. `may_be_committed` is
    True if the producer failed while it was unknown whether the transaction was committed.
    `supports_epoch_bump` is False if the coordinator cannot bump the epoch of a producer (before
    KIP-360). With `has_two_phases` (KIP-939), `prepared` is the transaction of an earlier producer
    that waits for `resume`.
    """

    def __init__(
        self,
        settings: ClientSettings,
        transactional_id: str,
        timeout_ms: int,
        *,
        has_two_phases: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.has_two_phases = has_two_phases
        self.prepared: ProducerIdAndEpoch | None = None
        self.state = TransactionState.UNINITIALIZED
        self.identity = NO_PRODUCER_ID
        self.error: KprotoError | None = None
        self.transaction_version = 1
        self.supports_epoch_bump = True
        self.must_find_coordinator = False
        self.is_committed = False
        self.may_be_committed = False
        self.on_change: Callable[[], None] = _ignore
        self._settings = settings
        self._attempts = Attempts(settings)
        self._in_flight: TransactionRequest | None = None
        self._began_at = 0.0
        self._needs_epoch_bump = False
        self._completion = TransactionCompletion()  # of the last transaction
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        self._partitions: set[TopicPartition] = set()
        self._new_partitions: dict[TopicPartition, None] = {}
        self._groups: set[str] = set()
        self._commits: deque[TransactionalCommit] = deque()
        self._done_commits: list[TransactionalCommit] = []
        self._awaits_completion = False  # a batch waits for the completion of the last transaction
        self._has_started = False  # the coordinator may have a transaction
        self._is_confirmed = False  # a response has shown that it has a transaction
        self._may_end = False  # all batches are complete
        self._is_commit_in_doubt = False  # an EndTxn may have committed the transaction
        self._fences = False  # InitProducerId aborts the transaction, not EndTxn

    # The state

    @property
    def is_open(self) -> bool:
        """True from the begin of a transaction to its end, also after an abortable error."""
        return self.state in (*_ACCEPTING, _S.ABORTABLE_ERROR, _S.ABORTING_TRANSACTION)

    @property
    def is_committing(self) -> bool:
        """True from the time at which EndTxn may be sent to commit, until its result is known."""
        return self.state is _S.COMMITTING_TRANSACTION and self._may_end

    @property
    def is_empty(self) -> bool:
        """True while nothing was sent for the transaction."""
        return not self._has_started

    @property
    def drops_unsent(self) -> bool:
        """True if the transaction cannot be committed: batches that were not sent must fail."""
        return self.state in (_S.ABORTABLE_ERROR, _S.ABORTING_TRANSACTION, _S.FATAL_ERROR)

    @property
    def bumps_at_end(self) -> bool:
        """True if EndTxn bumps the epoch: brokers then refuse late batches of the transaction."""
        return self.transaction_version >= EPOCH_BUMP_VERSION

    def failure(self) -> TransactionError:
        """Returns a new error for a caller: a FatalTransactionError, or TransactionAbortedError."""
        error = self.error
        if isinstance(error, TransactionError):
            return type(error)(error.reason, error.transactional_id, error.cause)
        why = "the transaction is aborted, and none of its records and offsets is committed"
        return TransactionAbortedError(why, self.transactional_id, error)

    @property
    def cause(self) -> KprotoError | None:
        """The error that has led to the present error state."""
        return self.error.cause if isinstance(self.error, TransactionError) else self.error

    def _change(self, state: TransactionState) -> None:
        check_transition(self.state, state)
        self.state = state
        self.on_change()

    # Events: the calls of the user

    def initialize(self) -> None:
        """Changes from UNINITIALIZED to INITIALIZING: requests a producer id, or its next epoch."""
        self.error = None
        self._change(_S.INITIALIZING)

    def use_version(self, transaction_version: int) -> None:
        """Sets the transaction version of the next transaction.

        If the version rises to 2, the producer first bumps its epoch, as the Java client does.
        """
        rises = self.transaction_version < EPOCH_BUMP_VERSION <= transaction_version
        if rises and self.state is _S.READY:
            self._change(_S.UNINITIALIZED)
        self.transaction_version = transaction_version

    def begin(self, now: float) -> None:
        """Changes from READY to IN_TRANSACTION: a transaction begins at `now`."""
        self._change(_S.IN_TRANSACTION)
        self.is_committed = False
        self.may_be_committed = False
        self.error = None
        self._began_at = now

    def resume(self, now: float) -> None:
        """Continues the prepared transaction of an earlier producer, only to end it."""
        self.begin(now)
        self.prepared = None
        self._has_started = True
        self._is_confirmed = True

    def take_over(self, identity: ProducerIdAndEpoch, transaction_version: int, now: float) -> None:
        """Continues the open transaction of another producer, only to end it."""
        self.identity = identity
        self.transaction_version = transaction_version
        self.initialize()
        self._change(_S.READY)
        self.resume(now)

    def leave_open(self) -> None:
        """Changes to FATAL_ERROR: another process ends the transaction."""
        why = "its transaction was left open for another process: close the producer"
        self.fail(FatalTransactionError(why, self.transactional_id))

    def commit_offsets(self, commit: TransactionalCommit) -> None:
        """Adds offsets to the open transaction; `is_pending` tells when the coordinator has them.

        Raises TransactionAbortedError or FatalTransactionError after an error.
        """
        if self.state not in _ACCEPTING or self._may_end:
            raise self.failure()
        self._commits.append(commit)
        self.on_change()

    def is_pending(self, commit: TransactionalCommit) -> bool:
        """Returns True until the coordinator has the offsets, or the transaction has failed."""
        return any(each is commit for each in self._commits)

    @property
    def is_adding(self) -> bool:
        """True while partitions or offsets are added to the transaction."""
        return bool(self._new_partitions or self._commits or self._in_flight)

    def begin_commit(self) -> None:
        """Refuses further records; the transaction is committed after `end`."""
        self._change(_S.COMMITTING_TRANSACTION)

    def begin_abort(self) -> None:
        """Refuses further records, and drops requests that add to the transaction."""
        self._change(_S.ABORTING_TRANSACTION)
        self._drop_queued()
        self._attempts.succeeded()

    def _drop_queued(self) -> None:
        self._awaits_completion = False
        self._new_partitions.clear()
        self._commits.clear()

    def end(self, *, is_in_doubt: bool = False) -> None:
        """Ends the transaction, because all of its batches are complete.

        `is_in_doubt` is True for an abort that cannot wait for the last Produce requests. In
        version 2 brokers refuse such requests after the abort. In version 1 the coordinator must
        fence the producer with a bumped epoch: it does so if InitProducerId has the epoch of an
        ongoing transaction. After this fencing, the producer cannot continue. No request is sent if
        the coordinator cannot have a transaction. Further calls for the same transaction have no
        effect.
        """
        if self._may_end:
            return
        self._may_end = True
        self._fences = is_in_doubt and not self.bumps_at_end
        if self._fences and not self.supports_epoch_bump:
            self._fail_end(None)
        elif self._has_started:
            self.on_change()
        else:
            self._complete(None)

    def give_up(self) -> None:
        """Changes to FATAL_ERROR if the transaction has not ended within its time limit."""
        if self.is_open:
            self._fail_end(self._attempts.error)

    # Events: the batches

    def needs_partition(self, tp: TopicPartition, now: float) -> bool:
        """Returns True if a partition must be added before a batch is sent to it at `now`.

        In version 2 the leader adds the partition; the result is True only if the last transaction
        may be incomplete.
        """
        if self.bumps_at_end:
            return self._completion.must_wait(now)
        return tp not in self._partitions

    def add_partitions(self, tps: Iterable[TopicPartition]) -> None:
        """Adds partitions to the open transaction by a request, unless they are being added.

        In version 2 requests the state of the last transaction.
        """
        if self.state not in _ACCEPTING:
            return
        if self.bumps_at_end:
            is_new, self._awaits_completion = not self._awaits_completion, True
        else:
            in_flight = self._in_flight
            adding = in_flight.partitions if isinstance(in_flight, AddPartitions) else ()
            added = self._partitions.union(self._new_partitions, adding)
            new = dict.fromkeys(tp for tp in tps if tp not in added)
            self._new_partitions.update(new)
            is_new = bool(new)
        if is_new:
            self.on_change()

    def on_batch_sent(self) -> None:
        """Stores that a batch is sent: from version 2 on, the leader begins the transaction."""
        self._has_started = True

    def on_records_failed(self, error: KprotoError, now: float, *, has_sequence: bool) -> None:
        """Makes the transaction abortable, or the producer fail, after records have failed.

        `has_sequence` is True if the records were in a batch with a sequence number.
        """
        if not self.is_open or self.is_committing:  # an EndTxn is not taken back
            return
        self._needs_epoch_bump = self._needs_epoch_bump or has_sequence
        if self.state not in _ACCEPTING:
            return
        action = action_of(TransactionApi.PRODUCE, error)
        if action in (ErrorAction.FENCED, ErrorAction.FATAL):
            self._fail(action, error, now)
        else:
            self._make_abortable(error)

    # Requests

    @property
    def not_before(self) -> float:
        """The time from which the next request may be sent, in seconds of the clock."""
        if self._must_describe:
            return self._completion.not_before
        return self._attempts.not_before

    @property
    def attempts(self) -> Attempts:
        """The failed attempts of the next request."""
        return self._attempts

    @property
    def _must_describe(self) -> bool:
        """True if a batch or a commit of offsets waits for the state of the last transaction."""
        is_needed = self._awaits_completion or (self.bumps_at_end and bool(self._commits))
        return is_needed and self._completion.is_pending and self.state in _ACCEPTING

    def next_request(self) -> TransactionRequest | None:
        """Returns the request that is due at `not_before`; None if there is none.

        Always returns None while a request is in flight.
        """
        if self._in_flight is not None:
            return None
        if self.state is _S.INITIALIZING:
            return InitProducerId(self.identity, self.has_two_phases, self.has_two_phases)
        if self._must_describe:
            return DescribeTransaction()
        if self.state in _ACCEPTING and self._new_partitions:
            return AddPartitions(tuple(self._new_partitions))
        if self.state in _ACCEPTING and self._commits:
            commit = self._commits[0]
            if not self.bumps_at_end and commit.group_id not in self._groups:
                return AddOffsets(commit.group_id)
            return CommitOffsets(commit)
        if self._may_end and self._fences:
            return InitProducerId(self.identity, self.has_two_phases)
        if self._may_end and self.state in _ENDING:
            return EndTransaction(self.state is _S.COMMITTING_TRANSACTION)
        return None

    def on_sent(self, request: TransactionRequest, now: float) -> None:
        """Stores that `request`, which `next_request` has returned, is sent at `now`."""
        self._in_flight = request
        if isinstance(request, DescribeTransaction):
            return
        self._attempts.begin(now)
        self.must_find_coordinator = False
        if isinstance(request, AddPartitions):
            for tp in request.partitions:
                self._new_partitions.pop(tp, None)
        self._has_started = self._has_started or not isinstance(request, InitProducerId)

    def _take_in_flight(self) -> tuple[TransactionRequest, bool]:
        """Returns the request in flight, and True if its result still counts."""
        request, self._in_flight = self._in_flight, None
        assert request is not None, "it was sent"
        match request:
            case InitProducerId():
                return request, self.state is _S.INITIALIZING or self._fences
            case EndTransaction():
                return request, self.state in _ENDING and self._may_end
        return request, self.state in _ACCEPTING

    def on_response(self, result: TransactionResult, now: float) -> None:
        """Processes the response to the request in flight."""
        request, counts = self._take_in_flight()
        if isinstance(request, DescribeTransaction):
            self._completion.on_state(result.state, now)
            self.on_change()
            return
        api = api_of(request)
        if isinstance(request, AddPartitions):
            is_added = len(result.errors) < len(request.partitions)
            self._is_confirmed = self._is_confirmed or is_added
        elif isinstance(request, AddOffsets):
            self._is_confirmed = True
        if isinstance(request, AddPartitions) and counts:
            self._partitions.update(set(request.partitions) - result.errors.keys())
            request = AddPartitions(tuple(result.errors))
        if not result.errors or not counts:
            self._attempts.succeeded()
        if result.errors and counts:
            worst = max(result.errors.values(), key=lambda each: _RANKS.index(action_of(api, each)))
            self._on_error(request, api, worst, now)
        elif counts:
            self._on_success(request, result, now)
        self.on_change()

    def _on_success(
        self, request: TransactionRequest, result: TransactionResult, now: float
    ) -> None:
        match request:
            case InitProducerId():
                assert result.producer is not None, "each response has it"
                self.identity = result.producer
                self.prepared = result.ongoing
                self._needs_epoch_bump = False
                self._completion.on_initialized()
                if self._fences:  # the coordinator had no transaction
                    self._complete(None)
                else:
                    self._change(_S.READY)
            case AddOffsets(group_id):
                self._groups.add(group_id)
            case CommitOffsets():
                self._done_commits.append(self._commits.popleft())
            case EndTransaction():
                if self.bumps_at_end:
                    self._completion.on_end(now)
                self._complete(result.producer)

    def on_error(self, error: KprotoError, now: float, api: TransactionApi | None = None) -> None:
        """Processes the error of the request in flight.

        `api` is FIND_COORDINATOR if the coordinator was not found, otherwise None. The request is
        sent again, or the transaction or the producer has failed.
        """
        request, counts = self._take_in_flight()
        if isinstance(request, DescribeTransaction):
            self._completion.on_error(is_permanent=remedy_of(error) is Remedy.FAIL)
        elif counts:
            self._on_error(request, api or api_of(request), error, now)
        else:
            self._attempts.succeeded()
        self.on_change()

    def _on_error(
        self, request: TransactionRequest, api: TransactionApi, error: KprotoError, now: float
    ) -> None:
        action = action_of(api, error)
        if isinstance(request, EndTransaction) and request.is_commit:
            self._is_commit_in_doubt = self._is_commit_in_doubt or may_be_done(error)
        if self._fences and error_name(error) == "CONCURRENT_TRANSACTIONS":
            self.fail(FatalTransactionError(FENCED_ITSELF, self.transactional_id))
            return
        if error_name(error) == "UNKNOWN_TOPIC_OR_PARTITION" and not self._attempts.count:
            self._attempts.limit_to(now + self._settings.metadata_wait_ms / 1000)
        if action in _RETRIES and self._attempts.failed(error, now):
            if action is ErrorAction.RETRY_SOON:
                is_first = isinstance(request, AddPartitions | AddOffsets)
                backoff_s = completion_backoff_s if is_first else concurrent_backoff_s
                self._attempts.shorten_backoff(now + backoff_s(self._attempts.count))
            self.must_find_coordinator = action is ErrorAction.FIND_COORDINATOR
            if isinstance(request, AddPartitions):
                self._new_partitions.update(dict.fromkeys(request.partitions))
            return
        self._attempts.succeeded()
        if isinstance(request, EndTransaction) and self._is_nothing_to_abort(request, error):
            self._complete(None)
        elif action in (ErrorAction.FENCED, ErrorAction.FATAL):
            self._fail(action, error, now)
        elif self._fences:
            self._fail_end(error)
        elif isinstance(request, InitProducerId):
            self.error = error
            self._change(_S.UNINITIALIZED)
        elif not isinstance(request, EndTransaction) or (
            action is ErrorAction.ABORTABLE and request.is_commit
        ):
            self._make_abortable(error)
        else:
            self._fail_end(error)

    def _is_nothing_to_abort(self, request: EndTransaction, error: KprotoError) -> bool:
        """Returns True if the coordinator has refused to abort, because it has no transaction.

        This happens only with transaction version 1, if no response has confirmed an
        AddPartitionsToTxn: the coordinator may have received no AddPartitionsToTxn, so that no
        transaction began there.
        """
        is_refused = error_name(error) == "INVALID_TXN_STATE" and not self._is_commit_in_doubt
        return is_refused and not (request.is_commit or self._is_confirmed or self.bumps_at_end)

    # Results

    def _make_abortable(self, error: KprotoError) -> None:
        if error_name(error) == "UNKNOWN_PRODUCER_ID":
            self._needs_epoch_bump = True
        self.error = error
        self._drop_queued()
        self._may_end = False
        self._change(_S.ABORTABLE_ERROR)

    def _fail(self, action: ErrorAction, error: KprotoError, now: float) -> None:
        is_fenced = action is ErrorAction.FENCED
        lasted_ms = round(1000 * (now - self._began_at)) if self.is_open else 0
        why = fatal_reason(
            error,
            is_fenced=is_fenced,
            lasted_ms=lasted_ms,
            timeout_ms=self.timeout_ms,
            is_commit_in_doubt=self._is_commit_in_doubt,
        )
        kind = FencedTransactionError if is_fenced else FatalTransactionError
        self.fail(kind(why, self.transactional_id, error))

    def _fail_end(self, error: KprotoError | None) -> None:
        self._is_commit_in_doubt |= self.state is _S.COMMITTING_TRANSACTION
        why = MAYBE_COMMITTED if self._is_commit_in_doubt else NOT_ABORTED
        self.fail(FatalTransactionError(why, self.transactional_id, error))

    def on_fault(self, error: KprotoError) -> None:
        """Changes to FATAL_ERROR after a fault of the client."""
        why = "the producer cannot continue"
        self.fail(FatalTransactionError(why, self.transactional_id, error))

    def fail(self, fatal: TransactionError) -> None:
        """Changes to FATAL_ERROR; `failure` returns errors as `fatal` from now on."""
        self.error = fatal
        self.may_be_committed = self._is_commit_in_doubt
        self._forget_transaction()
        self._change(_S.FATAL_ERROR)

    def _complete(self, producer: ProducerIdAndEpoch | None) -> None:
        """Ends the transaction; `producer` has the bumped epoch, None if EndTxn bumps none."""
        self.is_committed = self.state is _S.COMMITTING_TRANSACTION
        committed = self._done_commits if self.is_committed else []
        if producer is not None and self.bumps_at_end:
            self.identity = producer
            self._needs_epoch_bump = False
        self._forget_transaction()
        if not self._needs_epoch_bump:
            self._change(_S.READY)
        elif self.supports_epoch_bump:
            self._change(_S.UNINITIALIZED)
        else:
            self.fail(FatalTransactionError(EPOCH_LOST, self.transactional_id, self.error))
        for commit in committed:
            commit.on_committed()
