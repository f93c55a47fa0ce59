// What agent and central say to each other has bounds, so that neither can be filled by the other: each is kept exactly.

import { chainStart } from "../../src/core/journal/journal-chain.ts";
import { decodeAgentMessage, decodeCentralMessage } from "../../src/wire/channel.ts";
import { decodeEntry, decodeJournalPage, type JournalKind } from "../../src/wire/journal.ts";
import { decodeBlobsWanted, decodeManifest } from "../../src/wire/manifest.ts";
import { decodeAuditAsked, decodeCustomerAdd, decodeUserAdd } from "../../src/wire/operator.ts";
import { decodeReceiptBatch } from "../../src/wire/receipt.ts";
import {
  decodeCanaryLine,
  decodeGapLine,
  decodeRequestRecord,
} from "../../src/wire/request-log.ts";
import { decodeAgentApiError, decodeTokenAnswer } from "../../src/wire/token.ts";
import { items, number, testBounds } from "../support/bounds.ts";

const digest = chainStart;
const at = "2026-11-22T12:00:00.000Z";
const epoch = "0123456789abcdef";
const instance_id = "instance-1";
/** A count, or a place in a journal or lane: from 2^53 on numbers are not told apart. */
const counted = [0, 2 ** 53 - 1, number] as const;

/** Of the body of an entry. */
const bodyOf = (kind: JournalKind) => (body: unknown) =>
  decodeEntry({ seq: 1, kind, at, body: { ...Object(body) }, chain: digest });

testBounds(
  "an entry `cache.clear`",
  bodyOf("cache.clear"),
  { clear_id: "c1", domain: "a.example", host: null, patterns: ["path:css"] },
  [
    ["clear_id", 1, 64],
    ["domain", 3, 253],
    ["host", 3, 253],
    ["patterns", 1, 64, items("path:css")],
    ["patterns.0", 0, 4_096],
  ],
);

testBounds(
  "an entry `viewset.import`",
  bodyOf("viewset.import"),
  { import_id: "i1", domain: "a.example" },
  [
    ["import_id", 1, 64],
    ["domain", 3, 253],
  ],
);

const element = { bot: "Examplebot", range: "192.0.2.0/24" };
testBounds(
  "an entry `bots.changed`",
  bodyOf("bots.changed"),
  {
    domain: "a.example",
    set: "bad",
    from_version: 0,
    to_version: 1,
    added: [element],
    removed: [element],
    count: 1,
    digest,
    shrink_meant: false,
  },
  [
    ["from_version", ...counted],
    ["count", ...counted],
    ["added.0.bot", 1, 255],
    ["added.0.range", 0, 49],
    ["removed.0.bot", 1, 255],
  ],
);

const key = { name: "key-0123456789abcdef-1", version: 1, sealed: "A".repeat(80) };
testBounds("an entry `key.changed`", bodyOf("key.changed"), { keys: [key] }, [
  ["keys", 0, 100, items(key)],
  ["keys.0.version", 1, null, number],
  ["keys.0.sealed", 80, 80],
]);

const certificate = {
  id: 1,
  names: ["a.example"],
  not_before: at,
  not_after: at,
  fingerprint: digest,
  chain: "-----BEGIN CERTIFICATE-----",
  key_name: "key-0123456789abcdef-1",
  sealed_key: "A".repeat(100),
};
testBounds(
  "an entry `certificate.changed`",
  bodyOf("certificate.changed"),
  { certificates: [certificate] },
  [
    ["certificates", 0, 2_000, items(certificate)],
    ["certificates.0.id", 1, 2 ** 53 - 1, number],
    ["certificates.0.names", 1, 1_000, items("a.example")],
    ["certificates.0.names.0", 1, 255],
    ["certificates.0.not_after", 0, 40],
    ["certificates.0.chain", 1, 65_536],
    ["certificates.0.sealed_key", 38, 22_000],
  ],
);

const entry = { seq: 1, kind: "cache.clear", at, body: {}, chain: digest };
testBounds(
  "a page of the journal",
  decodeJournalPage,
  { epoch, head_seq: 1, resync: false, entries: [entry] },
  [
    ["epoch", 16, 64],
    ["head_seq", ...counted],
    ["entries.0.seq", ...counted],
    ["entries.0.kind", 0, 64],
    ["entries.0.at", 0, 40],
    ["entries.0.chain", 64, 64],
  ],
);

const position = {
  epoch,
  applied_seq: 1,
  chain: digest,
  oldest_unfinished: { seq: 2, kind: "cache.clear", since: at },
};
const told = { names: ["a.example"], not_after: at };
const report = {
  instance_id,
  position,
  counted: { boot_id: "b1", seq: 1 },
  spool: { accepted: 1, delivered: 1, spooled: 0, in_memory: 0, dropped: 0 },
  domains: [
    {
      domain: "a.example",
      backend: { requests: 1, errors: 0, latency_buckets: { "100ms": 1 }, reachable: true },
      unreviewed_bots: [{ name: "Examplebot", description: "Reads.", requests: 1 }],
    },
  ],
  certificates: [told],
  warnings: [],
};
testBounds("a report", decodeAgentMessage, { type: "report", report }, [
  ["report.instance_id", 8, 64],
  ["report.position.oldest_unfinished.kind", 0, 64],
  ["report.counted.boot_id", 1, 64],
  ["report.counted.seq", ...counted],
  ["report.spool.accepted", ...counted],
  ["report.domains.0.domain", 3, 253],
  ["report.domains.0.unreviewed_bots.0.name", 1, 255],
  ["report.domains.0.unreviewed_bots.0.description", 0, 1_024],
  ["report.certificates", 0, 100, items(told)],
  ["report.certificates.0.names.0", 0, 253],
]);

const receipt = { seq: 1, phase: "applied", detail: {}, took_ms: 0 };
testBounds("a batch of receipts", decodeReceiptBatch, { instance_id, receipts: [receipt] }, [
  ["receipts", 0, 1_000, items(receipt)],
  ["receipts.0.seq", ...counted],
  ["receipts.0.took_ms", ...counted],
]);

testBounds(
  "a question",
  decodeCentralMessage,
  {
    type: "ask",
    id: "a1",
    deadline_ms: 1_000,
    dry_run: { domain: "a.example", host: null, patterns: ["path:css"] },
  },
  [
    ["id", 1, 64],
    ["deadline_ms", 1, 30_000, number],
    ["dry_run.patterns", 1, 64, items("path:css")],
    ["dry_run.patterns.0", 0, 4_096],
  ],
);

const sample = {
  kind: "static",
  path: "a.css",
  query: "",
  mime: "text/css",
  size: 1,
  stored_at: at,
  pattern: "path:css",
};
testBounds(
  "an answer",
  decodeAgentMessage,
  { type: "answer", id: "a1", matched: 1, samples: [sample], error: "too long" },
  [
    ["id", 1, 64],
    ["matched", ...counted],
    ["samples", 0, 20, items(sample)],
    ["samples.0.path", 0, 16_384],
    ["samples.0.query", 0, 16_384],
    ["samples.0.mime", 0, 255],
    ["samples.0.pattern", 0, 4_096],
    ["error", 0, 1_000],
  ],
);

testBounds(
  "a token",
  decodeTokenAnswer,
  {
    access_token: "0123456789abcdef",
    token_type: "Bearer",
    expires_in: 3_600,
    deployment_site_id: 7,
    epoch,
  },
  [
    ["access_token", 16, 512],
    ["expires_in", 1, null, number],
    ["deployment_site_id", 1, null, number],
  ],
);

testBounds(
  "a refusal",
  decodeAgentApiError,
  { code: "conflict", message: "the mark is 7", mark: 7 },
  [["mark", 0, null, number]],
);

const record = {
  connection: 1,
  response_status: 200,
  request_method: "GET",
  uri_path: "/",
  backend_time: 0,
  when: 1_795_000_000.5,
  authority: "a.example",
  domain: "a.example",
  client_ip: "192.0.2.7",
  bytes_sent: 1,
  duration: 0.1,
  cache: "hit",
  verdict: "allowed",
  bot: "Examplebot",
  user_agent: "curl/8",
};
testBounds("a request record", decodeRequestRecord, record, [
  ["connection", ...counted],
  ["response_status", 0, 999, number],
  ["request_method", 0, 64],
  ["uri_path", 0, 8_192],
  ["backend_time", 0, null, number],
  ["authority", 0, 512],
  ["domain", 0, 253],
  ["client_ip", 0, 64],
  ["bytes_sent", ...counted],
  ["duration", 0, null, number],
  ["verdict", 0, 64],
  ["bot", 0, 255],
  ["user_agent", 0, 1_024],
]);

testBounds("a gap", decodeGapLine, { gap: { from_seq: 1, to_seq: 2, reason: "crash" } }, [
  ["gap.reason", 0, 64],
  ["gap.from_seq", ...counted],
  ["gap.to_seq", ...counted],
]);

testBounds("a canary", decodeCanaryLine, { canary: { at: 1 } }, [["canary.at", 0, null, number]]);

testBounds(
  "a manifest",
  decodeManifest,
  {
    devlove: { schema: "devlove/1", sha256: digest },
    files: [{ path: "a.css", sha256: digest, size: 1, mime: "text/css" }],
  },
  [
    ["files.0.path", 1, 4_096],
    ["files.0.size", ...counted],
    ["files.0.mime", 3, 255],
  ],
);

testBounds("a question after blobs", decodeBlobsWanted, { sha256: [digest] }, [
  ["sha256", 0, 10_000, items(digest)],
]);

const operator = "root";
testBounds(
  "a user that an operator adds",
  decodeUserAdd,
  { operator, username: "ada", customer_id: 1, first_name: "Ada", password: "correct horse" },
  [
    ["operator", 1, 100],
    ["username", 1, 150],
    ["customer_id", 1, 2 ** 53 - 1, number],
    ["first_name", 0, 150],
    ["password", 8, 1_024],
  ],
);

testBounds("a customer that an operator adds", decodeCustomerAdd, { operator, name: "Example" }, [
  ["name", 1, 255],
]);

testBounds(
  "a question after the audit trail",
  decodeAuditAsked,
  { customer_id: 1, who: "ada", since: at, lines: 10 },
  [
    ["who", 1, 150],
    ["since", 0, 40],
    ["lines", 0, 100_000, number],
  ],
);
