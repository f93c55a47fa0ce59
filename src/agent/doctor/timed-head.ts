// Asks a URL once and notes how long each step took: name, connection, TLS, answer. Redirects are not followed.

import { lookup } from "node:dns/promises";
import { request as askPlain } from "node:http";
import { request as askSecure } from "node:https";
import { isIP, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { proxyFor, tunnelAgent, type Proxy } from "../../base/proxy.ts";
import { messageOf } from "../../core/faults.ts";

export type TimedAnswer = {
  readonly url: string;
  /** The proxy that it was asked through. Name and connection are the proxy's then, and the tunnel counts to TLS. */
  readonly proxy: string | null;
  readonly addresses: readonly string[];
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly answer_ms: number | null;
  readonly status: number | null;
  /** The `Date` of the answer. */
  readonly date: string | null;
  /** When the certificate that was shown ends, ISO 8601. */
  readonly certificate_until: string | null;
  /** The step that failed, and why. */
  readonly error: {
    readonly step: "dns" | "connect" | "tls" | "answer";
    readonly text: string;
  } | null;
};

export type HeadOptions = {
  readonly method?: "GET" | "HEAD";
  /** The Host field, where it is not the URL's own. */
  readonly host?: string | undefined;
  readonly ca?: readonly string[] | undefined;
  readonly isVerified?: boolean;
  /** Whether it is asked through the proxy that the environment names, as central is and no origin. */
  readonly mayProxy?: boolean;
  readonly timeoutMs?: number;
};

function unknownYet(url: URL, proxy: Proxy | undefined) {
  return {
    url: `${url.origin}${url.pathname}`,
    proxy: proxy?.shown ?? null,
    addresses: [] as string[],
    dns_ms: null as number | null,
    connect_ms: null as number | null,
    tls_ms: null as number | null,
    answer_ms: null as number | null,
    status: null as number | null,
    date: null as string | null,
    certificate_until: null as string | null,
    error: null as TimedAnswer["error"],
  };
}

/** Never rejects. */
export async function timedHead(text: string, options: HeadOptions = {}): Promise<TimedAnswer> {
  const url = new URL(text);
  const proxy = options.mayProxy === true ? proxyFor(url) : undefined;
  const facts = unknownYet(url, proxy);
  let last = performance.now();
  const lap = (): number => {
    const now = performance.now();
    const took = now - last;
    last = now;
    return Math.round(took * 10) / 10;
  };
  const name = (proxy === undefined ? url : new URL(proxy.uri)).hostname.replace(
    /^\[(.*)\]$/,
    "$1",
  );
  if (isIP(name) === 0) {
    try {
      facts.addresses = (await lookup(name, { all: true })).map(({ address }) => address);
      facts.dns_ms = lap();
    } catch (error) {
      return { ...facts, error: { step: "dns", text: messageOf(error) } };
    }
  }
  const { promise, resolve } = Promise.withResolvers<TimedAnswer>();
  const isSecure = url.protocol === "https:";
  let step: "connect" | "tls" | "answer" = "connect";
  const { method = "HEAD", host, ca, isVerified = true, timeoutMs = 10_000 } = options;
  const asked = (isSecure ? askSecure : askPlain)(url, {
    method,
    agent: (proxy && tunnelAgent(url)) ?? false,
    headers: { ...(host !== undefined && { host }), "user-agent": "accel-agent netcheck" },
    ...(ca !== undefined && { ca: [...ca] }),
    ...(isSecure && { rejectUnauthorized: isVerified }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  asked.once("socket", (socket) => {
    // A tunnel is there already, with TLS in it: it gives no event of its own.
    if (proxy !== undefined) {
      facts.tls_ms = lap();
      step = "answer";
    }
    socket.once("connect", () => {
      facts.connect_ms = lap();
      step = isSecure ? "tls" : "answer";
    });
    socket.once("secureConnect", () => {
      facts.tls_ms = lap();
      step = "answer";
    });
  });
  asked.once("response", (answer) => {
    facts.answer_ms = lap();
    facts.status = answer.statusCode ?? null;
    facts.date = answer.headers.date ?? null;
    facts.certificate_until = shownUntil(answer.socket);
    answer.destroy();
    resolve(facts);
  });
  asked.once("error", (error) => {
    const isLate = error.name === "TimeoutError" || error.name === "AbortError";
    const said = isLate ? `nothing within ${timeoutMs / 1_000} s` : messageOf(error);
    resolve({ ...facts, error: { step, text: said } });
  });
  asked.end();
  return promise;
}

/** Returns when the certificate of the other side ends; null where it showed none. */
function shownUntil(socket: Socket): string | null {
  if (!(socket instanceof TLSSocket)) return null;
  return socket.getPeerX509Certificate()?.validToDate.toISOString() ?? null;
}
