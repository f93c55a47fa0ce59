// Warnings of central about its mail, its objects, and other centrals at its store: a part of the table in warning-codes.ts.

export const centralWarnings = {
  objects_unreachable: {
    of: "central",
    means:
      "The bucket that holds blobs and packages does not answer, refuses, or lacks an object that a row names. Customers who activate or upload, and agents that fetch, get 503 with `Retry-After` and try again; imports wait for it. What is active goes on being served.",
    todo: "The warning names bucket and reason. Look at the S3 that `objects.s3` names, and at the rights of central's access key; `accel-central check` tries them. An object that is lost must be brought back under its key: from a version or a replica of the bucket.",
  },
  clock_differs: {
    of: "central",
    means:
      "With several centrals at one store: the clock of this one and that of the store's server differ by more than 5 s, as far as it is certain. Tokens that another central issued may be refused here, or hold for longer; times in the audit trail and ages in metrics (`log_lag_seconds`) are wrong. By a minute it is an error.",
    todo: "Look at the time service of central's host (`chronyc tracking`, `timedatectl`). Where every central warns, it is the PostgreSQL's clock that is wrong. The warning ends within seconds after the clocks are alike.",
  },
  settings_differ: {
    of: "central",
    means:
      "Another central at the same store has other settings than this one. Which of them answers then decides what a customer gets, or which of them does a job what is sent and kept. It is an error where the two would answer from different places (`base_url`, the bucket, the database of request logs) and `store.may_differ` does not name that.",
    todo: "The warning names the settings and the other central. Make them alike and start again whichever is wrong. While a setting is changed on one central after the other, the warning ends with the last of them.",
  },
  objects_misplaced: {
    of: "central",
    means:
      "The newest blob or package that the store names is not in the bucket, or not in the state directory: the settings or a mount name another one, or it lost that object. Agents and customers who ask for what is not there wait for it; what is active goes on being served.",
    todo: "The warning names place and object. Name the bucket of `objects.s3`, or the directory, that has it. If it is the right one, bring the object back from a backup, a version or a replica. Central looks again every 30 s.",
  },
  mail_unset: {
    of: "central",
    means: "Messages wait, and no mail server is set.",
    todo: "Set `mail.server` and `mail.from` in central.yaml, and restart.",
  },
  mail_stuck: {
    of: "central",
    means: "Messages wait because the mail server cannot be reached.",
    todo: "Check the server and the keys of `mail:` in central.yaml.",
  },
} as const;
