// Whether a file is a wheel, and of which version: a ZIP file with one `*.dist-info` whose METADATA says what the file's name says.

import { open, type FileHandle } from "node:fs/promises";
import { crc32, inflateRawSync } from "node:zlib";
import type { PackageVersion } from "../../../core/package-version.ts";
import {
  parseDistInfo,
  parseWheelMetadata,
  parseWheelName,
  type WheelSaid,
} from "../../../core/wheel.ts";
import {
  findZipDirectory,
  readZipDirectory,
  zipLocalBytes,
  zipTailBytes,
  type ZipEntry,
  type ZipRead,
} from "../../../core/zip-directory.ts";

export type WheelChecked =
  | { readonly ok: true; readonly version: PackageVersion }
  | { readonly ok: false; readonly reason: string };

/** The most bytes of a directory: 65,534 entries with names of some 100 bytes, twice. */
const directoryBytesMax = 2 ** 24;
const metadataBytesMax = 2 ** 20;

const no = (reason: string): { readonly ok: false; readonly reason: string } => ({
  ok: false,
  reason,
});

/** `file`: the name that it was sent under. Reasons read behind "the file". Throws what the disk throws. */
export async function checkWheel(path: string, file: string): Promise<WheelChecked> {
  const named = parseWheelName(file);
  if (named === undefined)
    return no("has no wheel's name ({distribution}-{version}-{python}-{abi}-{platform}.whl)");
  await using handle = await open(path, "r");
  const entries = await readEntries(handle);
  if (!entries.ok) return entries;
  const folders = new Set(
    entries.value.flatMap(({ name }) => /^([^/]+\.dist-info)\//.exec(name)?.[1] ?? []),
  );
  const [folder, ...others] = folders;
  if (folder === undefined || others.length > 0)
    return no(`has ${folders.size} folders *.dist-info instead of one`);
  const at = (name: string): ZipEntry | undefined =>
    entries.value.find((entry) => entry.name === `${folder}/${name}`);
  const metadata = at("METADATA");
  if (metadata === undefined || at("WHEEL") === undefined || at("RECORD") === undefined)
    return no(`lacks METADATA, WHEEL or RECORD in ${folder}`);
  const text = await readEntry(handle, metadata);
  if (!text.ok) return no(`has a METADATA that ${text.reason}`);
  const said = parseWheelMetadata(text.value.toString("utf8"));
  if (said === undefined) return no("has a METADATA without Metadata-Version, Name or Version");
  if (!isSame(said, named)) return no(`is of ${told(said)} by its METADATA, but named ${file}`);
  if (!isSame(parseDistInfo(folder), said))
    return no(`is of ${told(said)} by its METADATA, which lies in ${folder}`);
  return { ok: true, version: said.version };
}

function isSame(a: WheelSaid | undefined, b: WheelSaid): boolean {
  return a?.distribution === b.distribution && a.version.key === b.version.key;
}

function told({ distribution, version }: WheelSaid): string {
  return `${distribution} ${version.text}`;
}

async function readEntries(handle: FileHandle): Promise<ZipRead<readonly ZipEntry[]>> {
  const { size } = await handle.stat();
  const tail = await readAt(handle, Math.max(0, size - zipTailBytes), Math.min(size, zipTailBytes));
  const place = findZipDirectory(tail, size);
  if (!place.ok) return place;
  if (place.value.size > directoryBytesMax) return no("has too large a directory");
  return readZipDirectory(await readAt(handle, place.value.offset, place.value.size), place.value);
}

async function readEntry(handle: FileHandle, entry: ZipEntry): Promise<ZipRead<Buffer>> {
  if (entry.size > metadataBytesMax || entry.packedSize > metadataBytesMax)
    return no("is too long");
  const local = await readAt(handle, entry.offset, zipLocalBytes);
  if (local.length < zipLocalBytes || local.readUInt32LE(0) !== 0x04_03_4b_50)
    return no("is not where the directory says");
  const begins = entry.offset + zipLocalBytes + local.readUInt16LE(26) + local.readUInt16LE(28);
  const packed = await readAt(handle, begins, entry.packedSize);
  const bytes = unpack(packed, entry.method);
  return bytes === undefined || bytes.length !== entry.size || crc32(bytes) !== entry.crc
    ? no("is damaged")
    : { ok: true, value: bytes };
}

function unpack(packed: Buffer, method: number): Buffer | undefined {
  if (method === 0) return packed;
  if (method !== 8) return undefined;
  try {
    return inflateRawSync(packed, { maxOutputLength: metadataBytesMax });
  } catch {
    return undefined;
  }
}

/** Shorter where the file ends. */
async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, position);
  return bytes.subarray(0, bytesRead);
}
