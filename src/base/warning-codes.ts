// Every health warning of both programs: what it means and what to do. docs/warnings.md is written from this table, and
// `Health` takes no code that is not in it. What is concerned, and since when, stands in the text of each warning.

import { classesUnknown } from "../core/serving/classes-unknown.ts";
import { centralWarnings } from "./central-warnings.ts";

type Meaning = {
  readonly of: "agent" | "central" | "both";
  /** Two or three sentences: what is so, and what that does to visitors, clears and records. */
  readonly means: string;
  readonly todo: string;
  /** It tells of something that happened, and not of something that is so: where it is raised, it has begun. */
  readonly isEvent?: true;
};

export const warningCodes = {
  unclean_end: {
    of: "agent",
    isEvent: true,
    means:
      "The agent ended without being told to, and was started again: it crashed, was killed, was ended by systemd's watchdog, its host went down, or starts of it failed. Visitors waited meanwhile. The warning says when, how often and by what. It is an error where that happened three times within 15 minutes, of which a host that went down and a start that failed do not count; it ends an hour after the last time.",
    todo: "`journalctl -u accel-agent` around that time says what it met. The watchdog means that systemd heard nothing from the agent for a minute: a thread hung, the host stood still, or the unit was masked while it ran; SIGKILL often means a host without memory (`journalctl -k`); a start that fails names its reason, as a port that another program has. If it happens again, send what `accel-agent diagnostics` collects. Two things that it may have cost: request records (`accel-agent logs backlog`), and answers that were under way.",
  },
  settings_unknown: {
    of: "both",
    means:
      "The settings file has keys that this release does not know: misspelt ones, or those of a later release. They are not used, so what they were to set has its default.",
    todo: "The warning names file, line and key, and the key that is nearest. Correct or remove it, and reload: the warning ends with a reload or start that meets none. `check` of the program whose file it is fails by such a key, and says that the program ignores it.",
  },
  restart_would_fail: {
    of: "agent",
    means:
      "The agent serves on, and could not be started again: since its start the settings file, the file of the secret or the authority of central was removed, or became one that cannot be read or is not valid. The warning says which, and of settings the line and the key. It is looked at every half minute, and when somebody asks for the status.",
    todo: "Put the file right before the agent or its host is restarted: the warning says how, and docs/operations/troubleshooting.md (a file of the agent is gone) where its copies are. The warning ends by itself when the file is right again.",
  },
  secret_exposed: {
    of: "agent",
    means:
      "Other users of the host can read the file from which systemd takes this agent's secret. Whoever has the secret can sign in at central as this deployment site. It is looked at every half minute, and when somebody asks for the status.",
    todo: "The warning has the line that closes the file. If somebody may have read it, rotate the secret of the deployment site. The warning ends by itself when the file is closed.",
  },
  origin_failing: {
    of: "agent",
    means:
      "For a minute or longer the origin of a domain failed half of its requests: no connection, no answer in time, a broken answer, or a status of 500 or more. The warning says how many of each. Visitors get what is cached, and the error for the rest.",
    todo: "`accel-agent netcheck` asks the origin from this host. The log has the reason of each failure; `accel-agent logs tail --status 5xx` shows the requests.",
  },
  origin_full: {
    of: "agent",
    means:
      "A domain's backend had no place for requests: as many as `accelerator.origin_requests_max` were under way in a worker. Further visitors wait, then get 503.",
    todo: "Find out why the backend is slow. If it could answer more at a time, raise `accelerator.origin_requests_max`.",
  },
  origin_down: {
    of: "agent",
    means: "An origin fails its active check (`backend.health`). It is asked last.",
    todo: "Repair it, or correct the path of the check. The warning ends with the first good answer.",
  },
  origins_unchecked: {
    of: "agent",
    means:
      "There are more active checks than this host makes. Origins without a check count as healthy.",
    todo: "Configure fewer checks, or longer intervals.",
  },
  cookies_passed: {
    of: "agent",
    means:
      "Most requests of a domain pass the cache by, because of a cookie of which its rules say nothing.",
    todo: "Name the cookie in `cookies.ignore` if it changes nothing, in `cookies.vary` if it chooses a page. `accel-agent why URL --cookie …` says whether one counts.",
  },
  descriptors_low: {
    of: "agent",
    means:
      "Four fifths of the files that the process may open are open. When none is left, visitors are refused and origins cannot be asked.",
    todo: "Raise `LimitNOFILE=` in a drop-in (`systemctl edit accel-agent`). If it is a flood, see docs/floods.md.",
  },
  connections_refused: {
    of: "agent",
    isEvent: true,
    means: "Connections of visitors were closed unread, because too many were open.",
    todo: "See `descriptors` in `accel-agent doctor`, and docs/floods.md.",
  },
  limits_full: {
    of: "agent",
    isEvent: true,
    means:
      "More addresses ask than the table of `limits.requests` has room for. Those for whom there is none are let through uncounted; the others are limited as before.",
    todo: "See docs/limits.md. Rules that count for hours or days keep addresses the longest: give them a narrower path.",
  },
  disk_low: {
    of: "agent",
    means:
      "Little is free on the disk of the state directory, or few more files can be made on it. The cache stops growing first. On a full disk the cache goes, what is activated waits for room, and there is little room for request records while central is away.",
    todo: "Make room: `df -h` and `df -i` say which is short. `accel-agent doctor` adds up what the settings allow: lower `cache.disk_max` or `viewset.disk_max`.",
  },
  records_dropped: {
    of: "agent",
    isEvent: true,
    means: "Request records were lost, and central has them as gaps. The balance still holds.",
    todo: "`accel-agent logs backlog` has the reasons of this host, `accel-central logs losses` those of all. After a full spool: let central be reached, or raise `spool.max`.",
  },
  secret_file_outdated: {
    of: "agent",
    means:
      "The secret16 was rotated. The agent learned the new one and keeps it in its state directory; the file still has the one before.",
    todo: "Nothing is urgent. `accel-agent join --central URL --replace` with a new code writes the new one, or write it by hand and restart.",
  },
  secret_not_kept: {
    of: "agent",
    means:
      "The secret16 was rotated while the state directory could not be written. The agent uses the new one from memory, and tries to write it every ten seconds.",
    todo: "Put the disk right before the agent is restarted. After a restart: `accel-agent join --central URL --replace` with a new code.",
  },
  central_unreachable: {
    of: "agent",
    means:
      "Central does not answer. The agent serves on; clears and activations wait, and request records are kept here.",
    todo: "`accel-agent netcheck` says at which step it fails. Look at central, its TLS terminator, DNS and the network.",
  },
  central_refused: {
    of: "agent",
    means: "Central answers with an error of its own.",
    todo: "Look at central's log; the warning has the answer.",
  },
  unknown_name16: {
    of: "agent",
    means: "Central does not know this name16. The agent serves on, and hears of nothing new.",
    todo: "Compare `name16` with the deployment site. A central that was restored may not know a new site.",
  },
  wrong_secret16: {
    of: "agent",
    means: "The secret is not that of this name16: it was rotated without a grace, or mistyped.",
    todo: "`accel-agent join --central URL --replace` with a new code, or write the site's secret16 into its file and restart.",
  },
  site_deleted: {
    of: "agent",
    means: "The deployment site was deleted at central. This agent serves nothing any more.",
    todo: "Stop the agent, or let the host join another site.",
  },
  token_expired: {
    of: "agent",
    means:
      "Central took a token for expired that the agent holds to be good. It asks for another one.",
    todo: "If it stays: compare the clocks.",
  },
  clock_skewed: {
    of: "agent",
    means:
      "The clocks of this host and of central differ by more than five minutes; central lets nobody in so.",
    todo: "Start time synchronization on both hosts.",
  },
  message_invalid: {
    of: "agent",
    means: "Central said something that this release does not understand.",
    todo: "Update the older of the two.",
  },
  link_failing: {
    of: "agent",
    means: "The link to central fails for another reason; the warning has it.",
    todo: "See the agent's log.",
  },
  entry_waiting: {
    of: "agent",
    means:
      "An entry of the journal could not be applied yet, and is tried again. Others are not held up.",
    todo: "The warning has the reason.",
  },
  snapshot_pending: {
    of: "agent",
    means:
      "The agent needs the whole state from central and cannot take it yet. It serves what it has.",
    todo: "The warning has the reason; the link to central comes first.",
  },
  state_unwritable: {
    of: "agent",
    means: "`agent.db` cannot be written: nothing new is applied, and receipts wait.",
    todo: "Check room, rights and health of the disk of the state directory.",
  },
  clears_unconfirmed: {
    of: "agent",
    means:
      "After a start central has not confirmed that no clear was missed. What is cached is asked for at the origin, or served, as `link.unconfirmed` says.",
    todo: "Let central be reached.",
  },
  purges_untold: {
    of: "agent",
    means:
      "A purge that was sent to this host is in force here and could not be told to central. Other accelerators of the domain still serve what they have.",
    todo: "Let central be reached; it is tried again.",
  },
  cache_to_be_dropped: {
    of: "agent",
    means:
      "Central was restored from a backup: what is cached of these domains is dropped in turn.",
    todo: "Nothing. Origins get more requests until their caches are full again.",
  },
  state_newer: {
    of: "agent",
    isEvent: true,
    means:
      "A newer release was here and wrote `agent.db`. Where it says that this release may use the file, it is used. Where it does not, the file was set aside as `agent.db.newer-<n>`, and the agent took everything from central anew: it is another instance there, and its cache began empty. Request records are not concerned. The warning lasts until the next start.",
    todo: "Nothing, if you went back to this release on purpose; docs/operations/upgrades.md says what it costs. Otherwise install the newer release again.",
  },
  cache_closed: {
    of: "agent",
    means: "The index of the cache cannot be opened. Everything is fetched from the origin.",
    todo: 'Check the disk: its room (`df -h`), its inodes (`df -i`), and whether it is read-only. SQLite says "unable to open database file" for each of them. The agent tries again every few seconds.',
  },
  cache_dropped: {
    of: "agent",
    isEvent: true,
    means: "Everything cached was dropped, for the reason that the warning has.",
    todo: "Nothing: the cache fills again. A damaged index was set aside. A state directory that was copied to another disk or host starts with an empty cache, because a copy does not know what was cleared since; docs/operations/install.md says how it is moved.",
  },
  cache_not_stored: {
    of: "agent",
    means: "Answers cannot be stored in the cache. Visitors are served.",
    todo: "Check room and health of the disk.",
  },
  clear_left_entries: {
    of: "agent",
    isEvent: true,
    means:
      "The check behind a clear found entries that it should have taken; they were dropped then.",
    todo: "This is a defect: report it with the log line, and clear the domain again.",
  },
  clear_unverified: {
    of: "agent",
    isEvent: true,
    means: "A clear is applied and nothing that it matches is served, but its check failed.",
    todo: "Give the clear again to have it checked.",
  },
  clear_widened: {
    of: "agent",
    isEvent: true,
    means: "A clear could not be kept in its own form and took more than was asked for.",
    todo: "Nothing. Origins get more requests for a while.",
  },
  index_thread_restarting: {
    of: "agent",
    isEvent: true,
    means: "The thread of the cache index ended and is started again.",
    todo: "If it happens again, report it with the log lines around it.",
  },
  hand_over_failed: {
    of: "agent",
    isEvent: true,
    means:
      "`accel-agent replace`, or an upgrade, was to put another release in the place of the one that serves. That one took the state directory and did not serve, so the release before was started again. Visitors waited meanwhile, and nobody was refused.",
    todo: "The text says what the other release met, and the agent's log says more. Correct it and run `accel-agent replace`, or install the release that serves. A restart would start the one that is installed.",
  },
  worker_replaced: {
    of: "agent",
    means: "A worker died or hung and was replaced. Its connections were closed.",
    todo: "If it happens again, report it with the log lines around it (`accel-agent diagnostics`).",
  },
  viewset_not_served: {
    of: "agent",
    means: "The version that central wants cannot be served here. The version before is served.",
    todo: "`accel-agent viewset list` has the reason. Activate a corrected version.",
  },
  viewset_quarantined: {
    of: "agent",
    means: "A version failed its trial on this host and is not tried again by itself.",
    todo: "Correct the cause, then `accel-agent viewset retry DOMAIN`, or activate another version.",
  },
  viewset_pinned: {
    of: "agent",
    means:
      "An operator went back to a version, and this host stays with it whatever central activates.",
    todo: "`accel-agent viewset retry DOMAIN` follows central again.",
  },
  viewset_objections: {
    of: "agent",
    means:
      "The active version is served as it was taken, and this release would refuse it: its devlove has something that is not allowed any more.",
    todo: "Correct it and activate the new version.",
  },
  viewset_failing: {
    of: "agent",
    means: "The version in force fails its probes on this host, and there is none to go back to.",
    todo: "`accel-agent viewset list` has the reason. Activate a version that works.",
  },
  viewset_incomplete: {
    of: "agent",
    means:
      "The active version cannot be served from this disk: its manifest or devlove is missing. It is fetched again.",
    todo: "Let central be reached, and check the disk.",
  },
  viewset_damaged: {
    of: "agent",
    means:
      "Files of a version in force are missing or damaged on disk. They are fetched again; the others are served.",
    todo: "Check the disk if it happens again.",
  },
  scrub_damage: {
    of: "agent",
    means: "The scrub found damage on disk, and mended or dropped what was damaged.",
    todo: "Check the disk: SMART, file system, memory.",
  },
  local_site_invalid: {
    of: "agent",
    means: "The directory or devlove of a site of this host cannot be used.",
    todo: "Correct what the warning names.",
  },
  local_site_odd: {
    of: "agent",
    means: "Something in a site of this host cannot be served or imported.",
    todo: "Rename or remove what the warning names.",
  },
  local_site_polled: {
    of: "agent",
    means:
      "A site's directory cannot be watched; it is looked at in turns. Requests see edits at once in any case.",
    todo: "Raise `fs.inotify.max_user_watches`, or set `watch_views: false`.",
  },
  bot_set_behind: {
    of: "agent",
    means: "A bot set on this host is older than central's. The last good one is in force.",
    todo: "The warning has the reason. A set that shrank by much is taken once central says that it is meant: `accel-central bots import … --replace`.",
  },
  sets_not_compiled: {
    of: "agent",
    means: "Changed bot sets could not be compiled. The tables before are in force.",
    todo: "Check memory and disk of the host, and see the log.",
  },
  vault_locked: {
    of: "agent",
    means:
      "Keys do not open with this host's secret16. Certificates that need them are not served.",
    todo: "The secret16 was rotated and could not be learned: let the host join again, or write the new secret into its file and restart.",
  },
  certificate_expired: {
    of: "agent",
    means: "A certificate in force has expired. Browsers warn visitors.",
    todo: "Upload a renewed one for the same names.",
  },
  certificate_expiring: {
    of: "agent",
    means: "A certificate in force expires within 14 days.",
    todo: "Upload a renewed one for the same names.",
  },
  bot_classes_unknown: { of: "central", means: classesUnknown.means, todo: classesUnknown.todo },
  certificate_renewal_failing: {
    of: "central",
    means:
      "A certificate that central ordered (`tls.acme`) is overdue for its renewal, and the order fails. The one before is served until it expires.",
    todo: "The warning says what the directory, or central's own look at the hosts, found wrong. docs/certificates.md says what helps.",
  },
  certificate_revoked: {
    of: "agent",
    means: "The responder of a certificate says that it was revoked. Browsers refuse it.",
    todo: "Upload another one for the same names.",
  },
  ocsp_must_staple: {
    of: "agent",
    means:
      "A certificate may only be served with an answer of OCSP, and there is none. Browsers refuse it.",
    todo: "Let this host reach the responder that the certificate names, over plain HTTP.",
  },
  ocsp_absent: {
    of: "agent",
    means: "There is no answer of OCSP to send along with a certificate.",
    todo: "As for `ocsp_must_staple`; it is less urgent.",
  },
  images_no_encoder: {
    of: "agent",
    means:
      "A devlove in force has `images.optimize`, and this host has no encoder of pictures: sharp is missing, or does not run here. Visitors get the originals.",
    todo: "`accel-agent doctor` says what is missing. The Debian package has sharp; beside the npm package it is installed by `npm install sharp`. It is looked for again every ten minutes. To do without it here, set `images.encoder: false`.",
  },
  images_encoder_failing: {
    of: "agent",
    means:
      "The process that makes pictures smaller died several times in a row. It is started again with growing pauses, up to a minute. Visitors get the originals, and forms that were made before.",
    todo: "The log names domain, digest and reason of each picture. If it is out of memory, raise `images.memory_max` or give the host more. If one site's pictures end it, `images.optimize: false` in its devlove helps until they are replaced.",
  },
  logs_not_shipped: {
    of: "agent",
    means: "Central does not take request records. They are kept here until the spool is full.",
    todo: "Check the link, and `logs_not_stored` at central. `accel-agent logs backlog` says how much waits.",
  },
  spool_full: {
    of: "agent",
    means: "The spool is full: records are dropped as `spool.when_full` says, and counted.",
    todo: "Let central be reached, or raise `spool.max`.",
  },
  spool_blocking: {
    of: "agent",
    means:
      "The spool is full and `when_full: block` holds requests up; after a few seconds they get 503.",
    todo: "Let central be reached and give the disk room, or choose another `spool.when_full`.",
  },
  spool_failing: {
    of: "agent",
    means: "Records cannot be written to disk.",
    todo: "Check room and health of the disk of the state directory.",
  },
  spool_damaged: {
    of: "agent",
    means: "A file of the spool was damaged. What could be read was sent, the rest is a gap.",
    todo: "Check the disk; the damaged part is in `spool/corrupt/`.",
  },
  spool_conflict: {
    of: "agent",
    means: "Central has records of this lane from another host: the state directory was copied.",
    todo: "Give each host a state directory of its own.",
  },
  spool_foreign: {
    of: "agent",
    means: "There are records of another deployment site; they are not sent.",
    todo: "Keep what you need of `spool/foreign/`, then empty it.",
  },
  spool_dead: {
    of: "agent",
    means: "The thread of the spool ended and could not be started again: no record is kept.",
    todo: "Restart the agent.",
  },
  log_file_broken: {
    of: "central",
    means:
      "A day's file of request logs, or the file of the numbers of requests, was broken and set aside. A new one takes its place.",
    todo: "Check the disk; `sqlite3 .recover` reads the file that was set aside.",
  },
  analytics_not_kept: {
    of: "central",
    means:
      "The numbers of requests cannot be brought up to date. No day of request logs is removed meanwhile. It is tried again every ten seconds.",
    todo: "Make room on the disk of the state directory, or repair it. Where request logs are in PostgreSQL and `logs_unreachable` is there as well, look after that one.",
  },
  logs_not_stored: {
    of: "central",
    means: "Request logs cannot be stored. Agents keep their records meanwhile.",
    todo: "Make room on the disk of the state directory, or repair it.",
  },
  logs_unreachable: {
    of: "central",
    means:
      "The PostgreSQL of request logs does not answer, or cannot hold them. Agents keep their records meanwhile, searches are answered with 503, and everything else goes on.",
    todo: "Look at the PostgreSQL that `request_logs.url` names, its log, and the network there; the warning has what it says. `accel-central check` tries it.",
  },
  rotated_secret_used: {
    of: "central",
    means:
      "A host goes on signing in with the secret16 that was rotated, and does not take the new one. When the grace ends it is shut out: it serves on, and hears of nothing new.",
    todo: "Update accel-agent on the host at the address that the warning has. Or write the new secret16 into its file and restart, or let the host join with a new code.",
  },
  rollout_returned: {
    of: "central",
    means:
      "A release that was rolled over a customer's hosts goes back, or went back: something spoke against it on the host that the warning names. The other hosts have the version before, or are told to.",
    todo: "`accel-central rollout status` says what became of each host. The warning ends with the next rollout of the customer.",
  },
  rollout_paused: {
    of: "central",
    means:
      "A rollout asks no further host until somebody decides. Hosts that have the release keep it.",
    todo: "`accel-central rollout status` says why. Then `accel-central rollout resume` or `accel-central rollout back`.",
  },
  rollout_stuck: {
    of: "central",
    means:
      "Hosts were told to go back to the version that they had, and did not in time. They are told again when they are heard.",
    todo: "`accel-central rollout status` names them. Look at the host: `journalctl -u accel-agent-rollout`.",
  },
  store_lost_commits: {
    of: "central",
    means:
      "Another PostgreSQL server took over that had not all that central had acknowledged, or an older copy of the database was restored. The store has another epoch since: every agent takes central's state anew, and drops what it has cached. What customers were told is done may not be in force.",
    todo: "The warning says between which times, and of which journals as far as it is known; so does `accel-central audit`. Tell the customers to look at what they changed then, and look yourself at tokens and passwords that were revoked. A synchronous standby loses nothing (docs/operations/cluster.md). The warning ends a week later.",
  },
  store_newer: {
    of: "central",
    means:
      "A newer release has brought central's store further than this release knows, and says that this one may work on it. What it added is not in force here.",
    todo: "Nothing while a release is brought to one central after the other, or if you went back to this one on purpose. docs/operations/upgrades.md says which releases work side by side.",
  },
  store_unreachable: {
    of: "central",
    means:
      "PostgreSQL, which holds the store, does not answer. Customers get 503 with `Retry-After`. Agents go on serving with what they have, and keep their receipts and request logs until it answers. What was acknowledged is in PostgreSQL.",
    todo: "Look at the PostgreSQL that `store.url` names, its log, and the network there. Where the warning says that this central alone has no way to it, look at this central's `store.url` and host. Central goes on by itself when it answers.",
  },
  ...centralWarnings,
} as const satisfies Readonly<Record<string, Meaning>>;

export type WarningCode = keyof typeof warningCodes;

/** Whether a warning tells of an event: it has begun where it is raised. */
export function isEvent(code: string): boolean {
  const meaning: Meaning | undefined = isWarningCode(code) ? warningCodes[code] : undefined;
  return meaning?.isEvent === true;
}

export function isWarningCode(text: string): text is WarningCode {
  return Object.hasOwn(warningCodes, text);
}
