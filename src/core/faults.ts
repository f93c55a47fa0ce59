// The one error class of both programs and the one catalog of its codes: whether a retry can help, how a process ends, and what the operator can do.

type Fault = { readonly retryable: boolean; readonly hint: string };

/** Maps a code to what it means for whoever meets it. Codes are declared here and nowhere else. */
export const FAULTS = {
  USAGE: { retryable: false, hint: "See --help." },
  SETTINGS_INVALID: {
    retryable: false,
    hint: "Correct the settings file; `check` shows every error in it.",
  },
  SECRET_UNREADABLE: {
    retryable: false,
    hint: "Put the 32 hex characters of secret16 into the file that `secret16_file` names, readable by this user only.",
  },
  FILE_UNUSABLE: {
    retryable: false,
    hint: "Put right the file that the message names, and let the user that runs the program read it.",
  },
  SEAL_BROKEN: {
    retryable: false,
    hint: "It was sealed with another key, or changed since: put back the key that belongs to it, or make anew what is sealed.",
  },
  STATE_DIR_UNUSABLE: {
    retryable: false,
    hint: "Create the directory and give it to the user that runs the program.",
  },
  STATE_DIR_LOCKED: {
    retryable: false,
    hint: "Another process uses this state directory: stop it, or give this one a directory of its own.",
  },
  PORT_TAKEN: {
    retryable: false,
    hint: "Another process listens there: stop it, or choose another port in the settings.",
  },
  ADDRESS_UNUSABLE: {
    retryable: false,
    hint: "The listen address must belong to this machine, and low ports need CAP_NET_BIND_SERVICE.",
  },
  SYSTEM_UNSUPPORTED: {
    retryable: false,
    hint: "The agent runs on Linux on x64 and arm64, under the Node that its packages bring or one of at least that version.",
  },
  DESCRIPTORS_USED_UP: {
    retryable: true,
    hint: "Raise LimitNOFILE in a drop-in of the unit, or `ulimit -n`.",
  },
  DEMO_PORT_UNUSABLE: {
    retryable: false,
    hint: "`npm start -- --port-base N` moves all four ports of the demo.",
  },
  DEMO_STATE_UNUSABLE: {
    retryable: false,
    hint: "`npm start -- --state DIR` uses another directory and creates it if needed.",
  },
  DEMO_NOT_READY: {
    retryable: true,
    hint: "Its log is in the state directory (central.log, agent.log).",
  },
  DATABASE_NEWER: {
    retryable: false,
    hint: "Nothing was changed. Install the newer release again; or, to stay with this one, restore the backup from before the update: docs/operations/upgrades.md.",
  },
  STORE_DAMAGED: {
    retryable: false,
    hint: "Restore central's store from its backup; what is left of it can be read with sqlite3 .recover. The agents go on serving.",
  },
  STORE_KEY_WRONG: {
    retryable: false,
    hint: "Put back the key file that belongs to this store; it is kept apart from the store's backups. The agents go on serving.",
  },
  SETTINGS_DIFFER: {
    retryable: false,
    hint: "All centrals at one store need these settings alike, or customers get another answer from each. To change one on each in turn, name it in `store.may_differ`; docs/operations/cluster.md has the steps.",
  },
  STORE_UNREACHABLE: {
    retryable: true,
    hint: "Look at the PostgreSQL that `store.url` names, its log, and the network there. Central goes on by itself when it answers. The agents go on serving, and keep their records.",
  },
  OBJECTS_UNREACHABLE: {
    retryable: true,
    hint: "Look at the S3 that `objects.s3` names: whether it answers, and what central's access key may do there. Central goes on by itself when it answers. The agents go on serving.",
  },
  OBJECTS_MISPLACED: {
    retryable: false,
    hint: "`accel-central objects move` brings blobs and packages into the bucket that `objects.s3` names. docs/operations/cluster.md has the steps.",
  },
  STORE_UNSUITED: {
    retryable: false,
    hint: "Put right what the message names at the PostgreSQL server, or let `store` in central.yaml name another one. docs/operations/cluster.md says what the server must be.",
  },
  STORE_TAKEN: {
    retryable: true,
    hint: "Only one central at a time can use a store. Stop the other one, which the message names, or let `store.url` of this one name a database of its own.",
  },
  STORE_REWOUND: {
    retryable: true,
    hint: "Central opens its store anew, and gives it another epoch if it has less than was acknowledged. If this comes again and again, `store.url` leads to several servers in turn: let it lead to the primary alone.",
  },
  STORE_NOT_EMPTY: {
    retryable: false,
    hint: "A store is moved into a database that holds nothing. Make a new one, and let `store.url` name it. The file was not changed.",
  },
  MOVE_FAILED: {
    retryable: true,
    hint: "Central still has its store in the file. Put right what the message names and give the command again: it goes on where it was. `--abandon` takes back what was moved.",
  },
  STORE_MOVED: {
    retryable: false,
    hint: "docs/operations/cluster.md says how a store is moved to PostgreSQL, and what may start where.",
  },
  BACKUP_FAILED: {
    retryable: true,
    hint: "Make room, or repair what the message names, and take the backup again. Nothing in use was changed.",
  },
  BACKUP_NOT_WHOLE: {
    retryable: false,
    hint: "The backup exists and holds everything that the disk still had. Put back what is missing from an older backup, and take another one.",
  },
  BACKUP_DAMAGED: {
    retryable: false,
    hint: "Nothing was restored. Take another backup. docs/operations/backup.md says how to read what is still good in this one.",
  },
  RESTORE_FAILED: {
    retryable: true,
    hint: "Make room, or repair what the message names, and restore again. The state directory is empty as before.",
  },
  RESTORE_UNFINISHED: {
    retryable: false,
    hint: "Run `accel-central restore` again, with this backup or another. It first removes what the unfinished restore wrote.",
  },
  DISK_FAILED: {
    retryable: true,
    hint: "Make room on the disk that holds the state directory, or put it right: whether it is writable, and in order.",
  },
  BUSY: {
    retryable: true,
    hint: "Too much is under way at once, or the host has more to do than it can: try again.",
  },
  DATABASE_BROKEN: {
    retryable: false,
    hint: "The file was set aside under the name in the message. What it held is fetched again or rebuilt.",
  },
  CENTRAL_UNREACHABLE: {
    retryable: true,
    hint: "Check `central_url`, DNS, and the network towards central; the agent goes on serving.",
  },
  CENTRAL_REFUSED: {
    retryable: true,
    hint: "Central answered with an error; its log has the request id.",
  },
  API_UNREACHABLE: {
    retryable: true,
    hint: "Check the address, DNS, and the network towards central. A clear that was under way may have been taken; it can be repeated.",
  },
  REQUEST_INVALID: {
    retryable: false,
    hint: "Correct what the message names. Nothing was changed.",
  },
  TOKEN_REFUSED: {
    retryable: false,
    hint: "Central knows no such API token; on central's host `accel-central token list` shows those in force.",
  },
  PROOF_INCOMPLETE: {
    retryable: true,
    hint: "What is missing may come: ask again later.",
  },
  UNKNOWN_NAME16: {
    retryable: true,
    hint: "Central does not know this name16: compare it with the deployment site in the customer API.",
  },
  WRONG_SECRET16: {
    retryable: true,
    hint: "The secret does not belong to this name16: it was rotated, or mistyped. `accel-agent join --central URL --replace` with a new code writes the right one.",
  },
  SITE_DELETED: {
    retryable: false,
    hint: "The deployment site was deleted at central: this agent serves nothing any more.",
  },
  CODE_REFUSED: {
    retryable: false,
    hint: "Make another code: `accel-central site enrol SITE` on central's host, or the customer API.",
  },
  HOST_TAKEN: {
    retryable: false,
    hint: "To leave it so, nothing is to be done: `accel-agent status` shows how it is. `--replace` joins all the same: the same site again with new credentials, or another one, and then what is cached for the site before is not served any more.",
  },
  HOST_NOT_FIT: {
    retryable: true,
    hint: "The lines above say why, and what to do.",
  },
  UNIT_NOT_STARTED: {
    retryable: true,
    hint: "Settings and secret are written. `journalctl -u` of the unit says why it does not start; then `systemctl enable --now` of it.",
  },
  TOKEN_EXPIRED: { retryable: true, hint: "The agent asks for a new token by itself." },
  CLOCK_SKEWED: {
    retryable: true,
    hint: "The clocks of this host and of central differ by more than five minutes: start time synchronization.",
  },
  MESSAGE_INVALID: {
    retryable: false,
    hint: "The two sides do not speak the same version: update the older one.",
  },
  BLOB_MISMATCH: {
    retryable: true,
    hint: "What arrived does not have the requested digest. The transfer is repeated.",
  },
  VIEWSET_INVALID: {
    retryable: false,
    hint: "Correct the viewset or its devlove and activate again; the previous one goes on serving.",
  },
  VIEWSET_PROBE_FAILED: {
    retryable: false,
    hint: "The previous version goes on serving. Once the cause is gone, `accel-agent viewset retry DOMAIN` tries this version again.",
  },
  MANIFEST_GONE: {
    retryable: true,
    hint: "A request looked up a file long after the version that it began with was replaced. It is answered when it is repeated.",
  },
  VIEWSET_PROBE_LATE: {
    retryable: true,
    hint: "The host is too busy, or its disk too slow, to probe the version. The agent tries it again.",
  },
  VIEWSET_QUARANTINED: {
    retryable: false,
    hint: "Activate another version, or let `accel-agent viewset retry DOMAIN` try this one again.",
  },
  VIEWSET_TOO_LARGE: {
    retryable: false,
    hint: "Give viewsets more room (viewset.disk_max), or activate smaller versions.",
  },
  IMPORT_IMPOSSIBLE: {
    retryable: false,
    hint: "Correct what the reason names and import again. `views_dir` and `devlove_file` of a domain are in the agent's settings (`sites`).",
  },
  IMPORT_NO_SITE: {
    retryable: false,
    hint: "Name `views_dir` and `devlove_file` of the domain in the settings (`sites`) of the host that has them, and import again.",
  },
  SET_MISMATCH: {
    retryable: true,
    hint: "The whole set is fetched. Until then the last good one stays in force.",
  },
  JUDGING_BUSY: {
    retryable: true,
    hint: "Much is being imported or stored at once, or central is stopping. Try again.",
  },
  SETS_NOT_COMPILED: {
    retryable: true,
    hint: "The previous tables stay in force. See the agent's log, and check memory and disk of the host.",
  },
  LIST_INVALID: {
    retryable: false,
    hint: "Correct these lines and import again: one address or CIDR range a line, # begins a comment. Nothing was changed.",
  },
  PATTERN_INVALID: {
    retryable: false,
    hint: "Patterns are FTS5 queries: put text with other characters than letters and digits in quotes.",
  },
  INDEX_BROKEN: {
    retryable: true,
    hint: "The warnings cache_closed and cache_dropped of `accel-agent status` have the reason. On a full disk make room; a damaged index is replaced by an empty one without you. Until then requests are misses.",
  },
  LOGS_UNSUITED: {
    retryable: true,
    hint: "Put right what the message names at the PostgreSQL server, or let `request_logs` in central.yaml name another one. Meanwhile agents keep their records. docs/operations/cluster.md says what the server must be.",
  },
  LOGS_MOVED: {
    retryable: false,
    hint: "docs/operations/cluster.md says how request logs go on in PostgreSQL, and what there is to do to take that back.",
  },
  LOGS_UNAVAILABLE: {
    retryable: true,
    hint: "Central's log threads are started again by themselves; see central's log, and the disk that holds its state directory, or the PostgreSQL that `request_logs.url` names.",
  },
  HAND_OVER_UNSUITED: {
    retryable: false,
    hint: "Restart it: `systemctl restart accel-agent` (or `accel-agent@NAME`). Visitors wait a moment, and nobody is refused.",
  },
  HAND_OVER_FAILED: {
    retryable: true,
    hint: "The log says what the new one met: `journalctl -u accel-agent`. `accel-agent status` says which release serves.",
  },
  STOPPING: { retryable: true, hint: "Ask again when the program runs again." },
  SPOOL_FAILED: {
    retryable: true,
    hint: "Check free space and health of the disk that holds the state directory.",
  },
  CONTROL_UNREACHABLE: {
    retryable: true,
    hint: "Is the program running, with this state directory? `systemctl status` of its unit says so, and `journalctl -u` of it why a start failed.",
  },
  CONTROL_SILENT: {
    retryable: true,
    hint: "systemd's watchdog ends a program that hangs within a minute and starts it again: `journalctl -u accel-agent` says so (or the name of its unit). Ask again then. `accel-agent doctor` examines the host of an agent meanwhile.",
  },
  PROTOCOL: { retryable: true, hint: "A new connection is made." },
  CONFLICT: { retryable: false, hint: "Read the current state and try again." },
  SUPERSEDED: { retryable: false, hint: "Nothing needs to be done: the later order counts." },
  CERTIFICATES_INVALID: {
    retryable: false,
    hint: "Upload the certificate again. Until then the previous ones are served.",
  },
  OCSP_UNREACHABLE: {
    retryable: true,
    hint: "The agent asks again. This host must reach the responder that the certificate names, over plain HTTP.",
  },
  VAULT_LOCKED: {
    retryable: false,
    hint: "The secret16 was rotated: put the new one into the file that `secret16_file` names and restart.",
  },
  NOT_FOUND: { retryable: false, hint: "Check the name." },
  WORKER_FAILED: {
    retryable: true,
    hint: "The log says why. If the worker was only late, the host has more to do than it can. systemd restarts the agent.",
  },
  INTERNAL: { retryable: false, hint: "This is a defect: report it with the log line." },
} as const satisfies Record<string, Fault>;

export type FaultCode = keyof typeof FAULTS;

/** `hint` takes the place of the code's own where the thrower knows better what helps. */
type FaultOptions = ErrorOptions & { readonly hint?: string };

export class AccelError extends Error {
  readonly code: FaultCode;
  readonly #hint: string | undefined;

  constructor(code: FaultCode, message: string, options?: FaultOptions) {
    super(message, options);
    this.name = "AccelError";
    this.code = code;
    this.#hint = options?.hint;
  }

  get retryable(): boolean {
    return FAULTS[this.code].retryable;
  }

  get hint(): string {
    return this.#hint ?? FAULTS[this.code].hint;
  }
}

/** Returns what the operator can do about anything thrown. */
export function hintOf(thrown: unknown): string {
  return thrown instanceof AccelError ? thrown.hint : FAULTS[codeOf(thrown)].hint;
}

/** The text of anything thrown, for a log line or a receipt: never a stack, never empty. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) {
    const cause =
      thrown.cause instanceof Error && thrown.cause.message !== ""
        ? `: ${thrown.cause.message}`
        : "";
    const own = thrown.message === "" ? thrown.name : thrown.message;
    return own.includes(cause.slice(2)) && cause !== "" ? own : own + cause;
  }
  return String(thrown);
}

/** Returns the code of an error of Node or SQLite, `ENOENT` for example, or undefined if there is none. */
export function systemCode(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string"
    ? thrown.code
    : undefined;
}

/** What the system and SQLite call a lack that may end by itself, or by an operator's hand. */
const shortages: Readonly<Record<string, FaultCode>> = {
  ENOSPC: "DISK_FAILED",
  EDQUOT: "DISK_FAILED",
  EROFS: "DISK_FAILED",
  SQLITE_FULL: "DISK_FAILED",
  SQLITE_READONLY: "DISK_FAILED",
  EMFILE: "DESCRIPTORS_USED_UP",
  ENFILE: "DESCRIPTORS_USED_UP",
};

function shortageOf(thrown: unknown): FaultCode | undefined {
  const code = systemCode(thrown) ?? "";
  return Object.hasOwn(shortages, code) ? shortages[code] : undefined;
}

/** Whether this host lacks what it may have again: room on its disk, or descriptors. What was to be done says nothing about it, and may be done later. */
export function isShortage(thrown: unknown): boolean {
  for (let at = thrown; at instanceof Error; at = at.cause)
    if (shortageOf(at) !== undefined) return true;
  return false;
}

/** Returns the code of anything thrown; foreign errors are INTERNAL, but for what this host lacks. */
export function codeOf(thrown: unknown): FaultCode {
  return thrown instanceof AccelError ? thrown.code : (shortageOf(thrown) ?? "INTERNAL");
}
