// DER (X.690) as far as OCSP needs it: values are read in place and never beyond the one that holds them; what is not well-formed is undefined.

export type DerValue = {
  readonly tag: number;
  /** With tag and length. */
  readonly whole: Uint8Array;
  readonly content: Uint8Array;
};

/** Reads the value at the beginning of the bytes. */
export function readDer(bytes: Uint8Array): DerValue | undefined {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (first === 0x80 || lengthBytes > 3) return undefined;
  let length = lengthBytes === 0 ? first : 0;
  for (let at = 0; at < lengthBytes; at++) length = length * 256 + (bytes[2 + at] ?? 0);
  const begin = 2 + lengthBytes;
  if (begin + length > bytes.length) return undefined;
  return {
    tag,
    whole: bytes.subarray(0, begin + length),
    content: bytes.subarray(begin, begin + length),
  };
}

/** Reads all values that a constructed one holds; undefined unless they fill it. */
export function readAll(bytes: Uint8Array): readonly DerValue[] | undefined {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length;) {
    const value = readDer(bytes.subarray(at));
    if (value === undefined) return undefined;
    values.push(value);
    at += value.whole.length;
  }
  return values;
}

/** Reads the values of a SEQUENCE, or of whatever else has this tag. */
export function inside(value: DerValue | undefined, tag = 0x30): readonly DerValue[] | undefined {
  return value?.tag === tag ? readAll(value.content) : undefined;
}

export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

/** Reads a GeneralizedTime as RFC 5280 §4.1.2.5.2 has it: to the second, in UTC. */
export function readTime(value: DerValue | undefined): number | undefined {
  if (value?.tag !== 0x18) return undefined;
  const text = Buffer.from(value.content).toString("latin1");
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second] = parts;
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}
