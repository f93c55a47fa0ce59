// What `accel-agent logs tail` asks for: the command judges it before it looks for an agent, and the agent does as well.

import { AccelError } from "./faults.ts";
import { parseDomainName } from "./ids.ts";

export type TailQuery = {
  /** The most records of those that are there already; the newest are taken. */
  readonly lines: number;
  readonly follow: boolean;
  /** A main domain, or the host of the request; undefined for any. */
  readonly domain: string | undefined;
  /** The range of statuses, both ends included. */
  readonly status: { readonly least: number; readonly most: number } | undefined;
};

const linesDefault = 10;
const linesMax = 10_000;

/** Checks the parameters. Throws USAGE saying what is wrong. */
export function parseTailArgument(parameters: unknown): TailQuery {
  const { lines = linesDefault, follow, domain, status } = Object(parameters) as TailParameters;
  const count = Number(lines);
  if (!Number.isInteger(count) || count < 0 || count > linesMax)
    throw new AccelError("USAGE", `--lines: a number from 0 to ${linesMax}`);
  const name = domain === undefined ? undefined : parseDomainName(domain);
  if (domain !== undefined && name === undefined)
    throw new AccelError("USAGE", `--domain: ${JSON.stringify(domain)} is no host name`);
  const range = status === undefined ? undefined : parseStatusRange(status);
  if (status !== undefined && range === undefined)
    throw new AccelError("USAGE", "--status: a status as 404, or a class of them as 5xx");
  return { lines: count, follow: follow === true, domain: name, status: range };
}

/** The parameters, which are not checked yet. */
type TailParameters = Readonly<Record<"lines" | "follow" | "domain" | "status", unknown>>;

/** Parses a status as 404, or a class of them as 5xx. */
export function parseStatusRange(raw: unknown): TailQuery["status"] {
  const match = typeof raw === "string" ? /^([1-5])(xx|\d\d)$/i.exec(raw) : null;
  if (match === null) return undefined;
  const [text, hundreds, rest = ""] = match;
  if (rest.toLowerCase() !== "xx") return { least: Number(text), most: Number(text) };
  return { least: Number(hundreds) * 100, most: Number(hundreds) * 100 + 99 };
}
