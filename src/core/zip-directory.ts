// Reads what a ZIP file holds from its end (PKWARE APPNOTE 6.3 §4.3). No part is trusted before it is checked
// against the size of the file.
//
// Encryption, several volumes and Zip64 are not supported; no package is that large.

export type ZipEntry = {
  readonly name: string;
  /** 0: stored, 8: deflated. */
  readonly method: number;
  readonly crc: number;
  readonly packedSize: number;
  readonly size: number;
  /** The offset of the file's local header. */
  readonly offset: number;
};

export type ZipPlace = {
  readonly offset: number;
  readonly size: number;
  readonly entries: number;
};

export type ZipRead<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

const endBytes = 22;
/** The bytes to read from the end of the file: the end record with the longest comment. */
export const zipTailBytes = endBytes + 0xff_ff;
const entryBytes = 46;
export const zipLocalBytes = 30;

const no = <T>(reason: string): ZipRead<T> => ({ ok: false, reason });

/**
 * Finds the place of the directory. `tail` holds the last bytes of the file, up to `zipTailBytes` of them.
 */
export function findZipDirectory(tail: Buffer, fileSize: number): ZipRead<ZipPlace> {
  for (let at = tail.length - endBytes; at >= 0; at--) {
    if (tail.readUInt32LE(at) !== 0x06_05_4b_50) continue;
    if (at + endBytes + tail.readUInt16LE(at + 20) !== tail.length) continue;
    const entries = tail.readUInt16LE(at + 10);
    const [size, offset] = [tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)];
    if (tail.readUInt16LE(at + 4) !== 0 || tail.readUInt16LE(at + 8) !== entries)
      return no("is a part of several");
    if (offset === 0xff_ff_ff_ff || entries === 0xff_ff) return no("is a Zip64 file");
    const endsAt = fileSize - tail.length + at;
    if (offset + size !== endsAt) return no("has a directory that does not end where it should");
    return { ok: true, value: { offset, size, entries } };
  }
  return no("is no ZIP file");
}

/**
 * Reads names as UTF-8. Refuses names that lead out of where they are unpacked, and names that are there
 * twice.
 */
export function readZipDirectory(
  bytes: Buffer,
  { offset, entries }: ZipPlace,
): ZipRead<readonly ZipEntry[]> {
  const found = new Map<string, ZipEntry>();
  let at = 0;
  for (let n = 0; n < entries; n++) {
    if (at + entryBytes > bytes.length || bytes.readUInt32LE(at) !== 0x02_01_4b_50)
      return no("has a broken directory");
    const [names, extra, comment] = [28, 30, 32].map((place) => bytes.readUInt16LE(at + place));
    const end = at + entryBytes + (names ?? 0);
    const next = end + (extra ?? 0) + (comment ?? 0);
    if (next > bytes.length) return no("has a broken directory");
    const name = bytes.toString("utf8", at + entryBytes, end);
    const entry = {
      name,
      method: bytes.readUInt16LE(at + 10),
      crc: bytes.readUInt32LE(at + 16),
      packedSize: bytes.readUInt32LE(at + 20),
      size: bytes.readUInt32LE(at + 24),
      offset: bytes.readUInt32LE(at + 42),
    };
    if ((bytes.readUInt16LE(at + 8) & 1) !== 0) return no("is encrypted");
    if (!isInside(name)) return no("holds a name that leads out of it");
    if (found.has(name)) return no(`holds ${JSON.stringify(name)} twice`);
    if (entry.offset + zipLocalBytes + entry.packedSize > offset)
      return no("has a directory that names what is not there");
    found.set(name, entry);
    at = next;
  }
  return at === bytes.length
    ? { ok: true, value: [...found.values()] }
    : no("has a broken directory");
}

function isInside(name: string): boolean {
  return (
    name !== "" &&
    !/^[\\/]|^[A-Za-z]:|\0|\\/.test(name) &&
    !name.split("/").some((part) => part === "..")
  );
}
