// A customer that has one of everything, made through the API; and requests made of the document's examples, in which its things stand for the document's.

import { createHash } from "node:crypto";
import { noneInRow } from "../../src/core/acme/order-step.ts";
import { member, type Api, type Reply } from "../central/api/api-harness.ts";
import { at, type Operation } from "./api-contract.ts";
import { makeCertificate } from "./x509.ts";

/** What stands at the places of paths, queries and bodies, by name; `chat:` and `email:` tell channels apart. */
export type Slots = Readonly<Record<string, string>>;

export type World = {
  readonly username: string;
  readonly token: string;
  /** Of another user of the same customer. */
  readonly mate: string;
  readonly slots: Slots;
};

const certificate = makeCertificate({ names: ["www.example.com"] });

/** What a world is made by. */
export type WorldApi = Pick<Api, "call" | "store" | "clock"> & {
  readonly logs: Pick<Api["logs"], "addDetail">;
};

export async function makeWorld(api: WorldApi, name: string): Promise<World> {
  const started = await api.call("POST", "/trial/", {
    body: { username: name, email: `${name}@mail.example.com` },
  });
  const token = member(started.body, "token");
  const post = async (path: string, body: unknown): Promise<unknown> => {
    const reply = await api.call("POST", path, { token, body });
    if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`);
    return reply.body;
  };
  const firstOf = async (path: string): Promise<unknown> => {
    const { body } = await api.call("GET", path, { token });
    return at(body, "0");
  };
  const site = await post("/deployment-site/", { tags: `tag-${name}` });
  const siteId = member(site, "id");
  const domain = `www.${name}.example.com`;
  await post("/domain/", { name: domain, deployment_site_id: Number(siteId) });
  const content = JSON.stringify({ domains: { [domain]: {} } });
  const viewset = `viewset-${name}`;
  const devlove = await post(`/${domain}/devlove/${viewset}/`, { schema: "devlove/1", content });
  const bot = `Bot-${name}`;
  const marked = { attach_to_bot: bot, attach_to_domain: domain };
  await post("/mark-as-bad-bot/192.0.2.0_24/", marked);
  await post("/mark-as-vip-bot/192.0.2.0_24/", marked);
  await post(`/import-viewset/${domain}/${siteId}/import-${name}/`, {});
  const patterns = { url_path_patterns: ["path:css"] };
  const clear = await post(`/clear-accelerator-cache/${domain}/?wait=0`, patterns);
  const uid = `channel-${name}`;
  const chat = await post("/monitor-notification-channel/chat/", {
    monitor_uid: uid,
    chat_channel_name: "#alerts",
    chat_hook_url: `https://chat.example.com/hooks/${name}`,
  });
  const mail = await post("/monitor-notification-channel/email/", { monitor_uid: uid });
  const name16 = member(site, "name16");
  const { pem, key } = certificate;
  const uploaded = await post(`/upload/certificates/${name16}/`, {
    certificate: pem,
    private_key: key,
  });
  const enrolment = await post(`/deployment-site/${siteId}/enrolment/`, { uses: 100 });
  const further = await post("/tokens/", { name: "further", role: "read" });
  const versions = `/active-viewset/${domain}/`;
  const version = member(await firstOf(versions), "id");
  await api.call("PUT", `${versions}${version}/`, { token });
  const orderId = await addOrder(api, domain);
  const customerId = member(started.body, "customer_id");
  const requestId = `1795000000250000.2026-11-18.${customerId}`;
  api.logs.addDetail(domain, requestId);
  const slots: Slots = {
    customer_id: customerId,
    pk: member(started.body, "user_id"),
    deployment_site_id: siteId,
    deployment_id: siteId,
    deployment_name: name16,
    name: domain,
    domain,
    domain_name: domain,
    viewset_name: viewset,
    viewset,
    devlove_id: member(devlove, "id"),
    viewset_id: version,
    symenckey_id: member(await firstOf("/symenckeys/"), "id"),
    certificate_id: member(uploaded, "id"),
    enrolment_id: member(enrolment, "id"),
    order_id: orderId,
    clear_id: member(clear, "clear_id"),
    token_id: member(further, "id"),
    request_id: requestId,
    "chat:channel_id": member(chat, "id"),
    "email:channel_id": member(mail, "id"),
    bot,
    list: "bad",
    tag: `tag-${name}`,
    monitor_uid: uid,
    email: `${name}@mail.example.com`,
    range: "192.0.2.0_24",
    version: "1.0",
    file: "none.whl",
  };
  return { username: name, token, mate: await addMate(api, name, Number(customerId)), slots };
}

/** An order of a certificate that has failed, as a devlove orders one. */
export async function addOrder(
  { store, clock }: Pick<Api, "store" | "clock">,
  domain: string,
): Promise<string> {
  const { id: domainId } = await store
    .selectFrom("domains")
    .select("id")
    .where("name", "=", domain)
    .executeTakeFirstOrThrow();
  const { id } = await store
    .insertInto("acme_orders")
    .values({
      domain_id: domainId,
      directory: "https://acme.example.com/directory",
      email: "certificates@example.com",
      part: 1,
      names: JSON.stringify([domain]),
      phase: "resting",
      due_at: new Date(clock.getTime() + 3_600_000).toISOString(),
      attempts: 1,
      in_row: JSON.stringify(noneInRow),
      error: "it answers 404",
      left_out: "{}",
      ordered: "[]",
      key_sealed: "",
      challenges: "[]",
      issued_key_sealed: "",
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  return String(id);
}

/** As the operator adds one. */
async function addMate(
  api: Pick<Api, "store" | "clock">,
  name: string,
  customerId: number,
): Promise<string> {
  const at = api.clock.toISOString();
  const { id } = await api.store
    .insertInto("users")
    .values({
      customer_id: customerId,
      username: `${name}-mate`,
      email: "",
      first_name: "",
      last_name: "",
      password_hash: null,
      may_publish: 0,
      may_read_logs: 1,
      date_joined: at,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  const token = `token-of-${name}-mate`;
  const digest = createHash("sha256").update(token).digest("hex");
  await api.store
    .insertInto("tokens")
    .values({ user_id: id, digest, when_created: at, when_revoked: null })
    .execute();
  return token;
}

/** Names of things that nobody has; ids are larger than any. */
export function missingOf(slots: Slots): Slots {
  const entries = Object.entries(slots).map(([name, value]) => {
    if (/^\d+$/.test(value)) return [name, String(900_000_000 + Number(value))];
    if (name === "request_id") return [name, value.replace("-11-18.", "-11-19.")];
    if (name === "list" || name === "range" || name === "version" || name === "file")
      return [name, value];
    if (/^[0-9a-f]{16,32}$/.test(value)) return [name, value.replaceAll(/./g, "f")];
    return [name, value.replace(/[a-z]\d*(?=\.example|@|$)/, (end) => `${end}none`)];
  });
  return Object.fromEntries(entries);
}

const slotOf = (operation: Operation, name: string): string =>
  name === "channel_id" ? `${/\/chat\//.test(operation.path) ? "chat" : "email"}:channel_id` : name;

/** The slots that a path of the operation has. */
export function pathSlots(operation: Operation): readonly string[] {
  return [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => slotOf(operation, name));
}

export function pathWith(operation: Operation, slots: Slots): string {
  return operation.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(slots[slotOf(operation, name)] ?? "none"),
  );
}

/** The parameters of the query without which the operation is refused, each a slot. */
export function querySlots({ told }: Operation): readonly string[] {
  const parameters: readonly unknown[] = Object(told["parameters"] ?? []);
  return parameters
    .filter((one) => at(one, "in") === "query" && at(one, "required") === true)
    .map((one) => String(at(one, "name")));
}

/** What the query needs, with `more` behind it. */
export function queryWith(
  operation: Operation,
  slots: Slots,
  more: Readonly<Record<string, string>> = {},
): string {
  const needed = Object.fromEntries(
    querySlots(operation).map((name) => [name, slots[name] ?? "none"]),
  );
  const query = new URLSearchParams({ ...needed, ...more }).toString();
  return query === "" ? "" : `?${query}`;
}

/** Which slot the value of a field of an example stands for; undefined: for nobody's thing. */
function fieldSlot(key: string, value: unknown): string | undefined {
  if (key === "deployment_site_id" || key === "deployment_id") return "deployment_site_id";
  if (key === "remove_from_bot" || key === "attach_to_bot" || key === "bot") return "bot";
  if (key === "monitor_uid" || key === "email") return key;
  if (key === "link_to_deployment_sites_with_tags") return "tag";
  return value === "www.example.com" ? "domain" : undefined;
}

/** The slots that an example has. */
export function bodySlots(example: unknown, key = ""): ReadonlySet<string> {
  if (typeof example === "object" && example !== null)
    return new Set(Object.entries(example).flatMap(([name, value]) => [...bodySlots(value, name)]));
  const slot = fieldSlot(key, example);
  return new Set(slot === undefined ? [] : [slot]);
}

/** The example with a customer's things in it. */
export function bodyWith(example: unknown, slots: Slots, key = ""): unknown {
  if (Array.isArray(example)) return example.map((one) => bodyWith(one, slots, key));
  if (typeof example === "object" && example !== null)
    return Object.fromEntries(
      Object.entries(example).map(([name, value]) => [name, bodyWith(value, slots, name)]),
    );
  const slot = fieldSlot(key, example);
  const value = slot === undefined ? undefined : slots[slot];
  if (typeof example === "string" && value === undefined)
    return example
      .replaceAll("www.example.com", slots["domain"] ?? "none")
      .replaceAll("-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n", certificate.pem)
      .replaceAll("-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n", certificate.key);
  return value === undefined ? example : typeof example === "number" ? Number(value) : value;
}

/** Of the operation's body, as JSON; none: one request without a body. */
export function examplesOf({ told }: Operation): readonly unknown[] {
  const media = at(told, "requestBody", "content", "application/json");
  const examples = Object.values(Object(at(media, "examples") ?? {}));
  return examples.length === 0 ? [undefined] : examples.map((one) => at(one, "value"));
}

/**
 * A reply in which the values of slots are named by their slots, and the customer's own name too: equal for two that differ in them only. What was made or
 * read by a good one has ids of its own.
 */
export function neutral({ status, body, headers }: Reply, slots: Slots, own: string): object {
  const named = Object.entries(slots).sort(([, a], [, b]) => b.length - a.length);
  let text = JSON.stringify(body) ?? "";
  if (status < 300) {
    text = text.replaceAll(/"(\w*id)":(?:\d+|"[0-9a-f]+")/g, '"$1":"<id>"');
    text = text.replaceAll(/"(secret16|name16|fingerprint)":"[0-9a-f]+"/g, '"$1":"<own>"');
  }
  for (const [name, value] of named) {
    const quoted = value.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const isOne = new RegExp(`(?<![\\w.])${quoted}(?![\\w])`, "g");
    text = text.replaceAll(isOne, `<${slotClass(name)}>`);
  }
  return { status, body: text.replaceAll(own, "<own>"), type: headers["content-type"] };
}

/** Slots that hold the same value are one. */
function slotClass(name: string): string {
  if (name === "name" || name === "domain_name") return "domain";
  // Ids of different things may be the same number.
  if (/^(?:pk|\w+_id)$/.test(name) && name !== "clear_id") return "id";
  if (name === "deployment_id") return "deployment_site_id";
  return name === "viewset" ? "viewset_name" : name;
}
