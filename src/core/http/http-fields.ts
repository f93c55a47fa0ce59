// Header fields as received: pairs in order, names in the sender's case. Look-up, list syntax, and the fields
// that end at this hop.

export type Field = readonly [name: string, value: string];

/** Reads the flat form of Node and undici: name, value, name, value. */
export function fieldsOfRaw(raw: readonly string[]): readonly Field[] {
  const fields: Field[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) fields.push([raw[i] ?? "", raw[i + 1] ?? ""]);
  return fields;
}

/** All values of a field; `name` in lower case. */
export function fieldValues(fields: readonly Field[], name: string): readonly string[] {
  const values: string[] = [];
  for (const [own, value] of fields)
    if (own.length === name.length && own.toLowerCase() === name) values.push(value.trim());
  return values;
}

/** The lines of a field as one value (RFC 9110 §5.3); undefined when there is none. */
export function fieldValue(fields: readonly Field[], name: string): string | undefined {
  let found: string | undefined;
  for (const field of fields) {
    if (field[0].length !== name.length || field[0].toLowerCase() !== name) continue;
    const value = field[1].trim();
    found = found === undefined ? value : `${found}, ${value}`;
  }
  return found;
}

export function withoutFields(
  fields: readonly Field[],
  names: ReadonlySet<string>,
): readonly Field[] {
  return fields.filter(([name]) => !names.has(name.toLowerCase()));
}

const comma = 44;
const semicolon = 59;
const quote = 34;
const backslash = 92;

/**
 * Splits a comma-separated list; commas within quoted strings do not separate (RFC 9110 §5.6.1). A quote that
 * is never closed is an ordinary character. Each character is looked at twice at most, because visitors
 * choose what stands here.
 */
export function listMembers(value: string): readonly string[] {
  return splitUnquoted(value, comma);
}

/** Splits a member of a list into its value and its parameters (RFC 9110 §5.6.6); semicolons within quoted strings do not separate. Each of them may be empty. */
export function memberParts(member: string): readonly string[] {
  return splitUnquoted(member, semicolon);
}

/** Returns what stands between the separators, trimmed; members of a list without the empty ones. */
function splitUnquoted(
  value: string,
  separator: typeof comma | typeof semicolon,
): readonly string[] {
  const members: string[] = [];
  const add = (from: number, to: number): void => {
    const member = value.slice(from, to).trim();
    if (member !== "" || separator === semicolon) members.push(member);
  };
  let from = 0;
  // After one unclosed quote, no later one is closed either: its end would have closed the first.
  let isOpen = false;
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code === separator) {
      add(from, at);
      from = at + 1;
    } else if (code === quote && !isOpen) {
      const end = quotedEnd(value, at);
      isOpen = end === undefined;
      at = end ?? at;
    }
  }
  add(from, value.length);
  return members;
}

/** Returns where the quoted string that begins at `from` is closed. */
function quotedEnd(value: string, from: number): number | undefined {
  for (let at = from + 1; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at++;
  }
  return undefined;
}

/**
 * Fields about one connection (RFC 9110 §7.6.1 and its predecessors), which neither a document nor a cache
 * may set.
 */
export const hopByHop: readonly string[] = [
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

const onlyHopByHop: ReadonlySet<string> = new Set(hopByHop);

/** Returns the fields to forward: all but the hop-by-hop ones and those that `Connection` names. */
export function withoutHopByHop(fields: readonly Field[]): readonly Field[] {
  return withoutFields(fields, withConnection(fields, onlyHopByHop));
}

/**
 * Returns the names with those that `Connection` names. `names` have the hop-by-hop ones among them: what nearly every
 * message says of its connection adds nothing.
 */
export function withConnection(
  fields: readonly Field[],
  names: ReadonlySet<string>,
): ReadonlySet<string> {
  const connection = fieldValue(fields, "connection")?.toLowerCase();
  if (connection === undefined || connection === "keep-alive") return names;
  const all = new Set(names);
  // Content-Length and Host stay even if Connection names them: framing and addressing depend on them.
  for (const name of listMembers(connection))
    if (name !== "content-length" && name !== "host") all.add(name);
  return all;
}
