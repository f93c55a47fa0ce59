// How the rows of the bot rules are written: requests of one customer who has `shop.example.com` with `static.shop.example.com` on one deployment.

export type Asked = {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: object;
  /** Another customer, who has the same domains. */
  readonly asOther?: boolean;
};

export type Step =
  | readonly [asked: Asked, status: number, answer?: object]
  /** The clock goes on. */
  | { readonly waitMs: number };

export type BotRule = {
  readonly rule: string;
  readonly steps: readonly Step[];
  /** What the deployment has been told in the end: bodies of `bots.changed`, `policy.classes` and `policy.changed`, the last ones. */
  readonly told?: readonly object[];
  /** Answers and what the deployment has been told hold nothing else. */
  readonly isExact?: boolean;
  /** Of marks; central's own where absent. */
  readonly limits?: { readonly marksBurst: number; readonly marksPerSecond: number };
};

export const main = "shop.example.com";
export const sub = `static.${main}`;

export type List = "bad" | "vip";
type More = { readonly bot?: string; readonly domain?: string; readonly custom?: unknown };

export function mark(list: List, range: string, more: More = {}): Asked {
  const { bot = "Crawler", domain = main, custom } = more;
  const flag = custom === undefined ? {} : { is_custom_ip_range: custom };
  const body = { attach_to_bot: bot, attach_to_domain: domain, ...flag };
  return { method: "POST", path: `/mark-as-${list}-bot/${range}/`, body };
}

export function remove(list: List, range: string, more: More = {}): Asked {
  const { bot = "Crawler", domain = main, custom } = more;
  const flag = custom === undefined ? {} : { is_custom_ip_range: custom };
  const body = { remove_from_bot: bot, remove_from_domain: domain, ...flag };
  return { method: "POST", path: `/remove-ip-from-${list}-bot-list/${range}/`, body };
}

export function check(list: List, range: string): Asked {
  return { method: "GET", path: `/is-${list}-bot/${range}/` };
}

export function listOf(list: List, query = ""): Asked {
  return { method: "GET", path: `/list-${list}-bots/${query}` };
}

export function setPolicy(body: object): Asked {
  return { method: "POST", path: "/bot-access-policy/", body };
}

export const getPolicy: Asked = { method: "GET", path: "/bot-access-policy/" };

export function addDomain(name: string): Asked {
  return { method: "POST", path: "/domain/", body: { name } };
}

/** A bot record that holds exactly these. */
export function holds(...elements: readonly string[]): object {
  return { ip_addresses: elements };
}

/** A problem whose errors name these places. */
export function at(...paths: readonly string[]): object {
  return { errors: paths.map((path) => ({ path })) };
}

/** `count` addresses from the start, as texts. */
export function addresses(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `${prefix}.${n >> 8}.${n & 255}`);
}
