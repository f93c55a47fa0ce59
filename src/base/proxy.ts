// The proxy on the way to central, as HTTPS_PROXY and NO_PROXY name it: a tunnel (CONNECT, RFC 9110 §9.3.6) through which TLS is spoken with central itself.
//
// The names are those of curl and everybody else, in either case; the lower one counts first. What is on this host is never asked through a proxy.

import { readFileSync } from "node:fs";
import { Agent as SecureAgent } from "node:https";
import { parseEnv } from "node:util";
import { Agent, Pool, ProxyAgent, type Dispatcher } from "undici";
import { parseIp, parseRange } from "../core/addresses/ip.ts";
import { AccelError } from "../core/faults.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export type Proxy = {
  /** With its credentials, if it has any. */
  readonly uri: string;
  /** Without them, for messages. */
  readonly shown: string;
  /** The variable that names it. */
  readonly variable: string;
};

/**
 * Returns the proxy through which a URL is asked; undefined: none. Throws SETTINGS_INVALID where the variable is no URL of an HTTP proxy. Plain http is
 * spoken on this host alone, so that HTTP_PROXY means nothing here.
 */
export function proxyFor(target: URL, env: Environment = process.env): Proxy | undefined {
  const variable = ["https_proxy", "HTTPS_PROXY"].find((name) => (env[name] ?? "") !== "");
  if (variable === undefined || target.protocol !== "https:" || isOnThisHost(target.hostname))
    return undefined;
  if (isExcepted(target, env["no_proxy"] ?? env["NO_PROXY"] ?? "")) return undefined;
  const given = env[variable] ?? "";
  const url = URL.parse(given.includes("://") ? given : `http://${given}`);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw new AccelError(
      "SETTINGS_INVALID",
      `${variable} must be the address of an HTTP proxy, such as http://proxy.example.com:3128`,
    );
  return { uri: url.href, shown: url.origin, variable };
}

export function isOnThisHost(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

const variables = ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"] as const;

/**
 * Returns the variables as a systemd unit reads them from its `EnvironmentFile=`. What could need an escape there is left out: in a URL it is percent-encoded,
 * and in NO_PROXY it names nothing.
 */
export function environmentText(proxy: Proxy, env: Environment = process.env): string {
  const excepted = (env["no_proxy"] ?? env["NO_PROXY"] ?? "").replaceAll(/[^\w.,:*/[\] -]/g, "");
  const lines = [`HTTPS_PROXY="${proxy.uri.replaceAll("$", "%24")}"`];
  if (excepted !== "") lines.push(`NO_PROXY="${excepted}"`);
  return `${lines.join("\n")}\n`;
}

/**
 * Sets the variables in `env` from such a file, where none of them is set: a command about a unit goes the unit's way. A file that is missing, or that this
 * user may not read, sets none.
 */
export function takeEnvironment(path: string, env: NodeJS.ProcessEnv = process.env): void {
  if (variables.some((name) => (env[name] ?? "") !== "")) return;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return;
  }
  const found = parseEnv(text);
  for (const name of variables) if (found[name] !== undefined) env[name] = found[name];
}

/** Whether NO_PROXY names the target: `*`, a name with all below it, an address or a CIDR range; each but `*` may end with a port. */
function isExcepted(target: URL, list: string): boolean {
  const port = target.port === "" ? "443" : target.port;
  const host = target.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  const address = parseIp(host);
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .some((entry) => {
      if (entry === "*") return true;
      const range = parseRange(entry.replace(/^\[(.*)\]$/, "$1"));
      if (range.ok) {
        const { family, first, last } = range.range;
        return address?.family === family && first <= address.value && address.value <= last;
      }
      const [, name = "", only] = /^\[?([^\]]*?)\]?(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
      if (only !== undefined && only !== port) return false;
      const bare = name.replace(/^\*?\./, "");
      return bare !== "" && (host === bare || host.endsWith(`.${bare}`));
    });
}

export type DispatcherOptions = {
  readonly connectTimeoutMs: number;
  /** The time to the first byte of an answer, and between two pieces of it. */
  readonly silenceMs: number;
  readonly connections?: number;
  /** What else TLS with the target is told. */
  readonly tls?: { readonly ca?: string[]; readonly rejectUnauthorized?: boolean };
};

/** Opens what asks the target over HTTP/1.1, through its proxy if it has one. */
export function openDispatcher(
  target: URL,
  { connectTimeoutMs, silenceMs, connections, tls = {} }: DispatcherOptions,
): Dispatcher {
  const proxy = proxyFor(target);
  const bounds = {
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    allowH2: false,
    ...(connections !== undefined && { connections }),
  };
  if (proxy === undefined)
    return new Agent({ ...bounds, connect: { timeout: connectTimeoutMs, ...tls } });
  return new ProxyAgent({
    ...bounds,
    uri: proxy.uri,
    requestTls: { timeout: connectTimeoutMs, ...tls },
    proxyTls: { timeout: connectTimeoutMs },
    // Without a deadline a proxy that says nothing would hold whoever asks.
    clientFactory: (origin, given) =>
      new Pool(origin, { ...given, headersTimeout: connectTimeoutMs }),
  });
}

/** Returns what node:https and ws ask the target through; undefined: they need nothing. */
export function tunnelAgent(target: URL): SecureAgent | undefined {
  const secure = new URL(target);
  secure.protocol = target.protocol.replace(/^wss?:$/, (scheme) =>
    scheme === "wss:" ? "https:" : "http:",
  );
  const proxy = proxyFor(secure);
  return proxy && new SecureAgent({ proxyEnv: { HTTPS_PROXY: proxy.uri } });
}
