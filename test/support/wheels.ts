// Wheels made in memory, whole or broken on purpose, and the forms they are sent in.

import { crc32, deflateRawSync } from "node:zlib";

export type Member = {
  readonly name: string;
  readonly content: string | Buffer;
  readonly method?: 0 | 8;
  readonly flags?: number;
  /** Told instead of the right one. */
  readonly crc?: number;
};

/** A ZIP file as Python's zipfile writes one. */
export function zip(members: readonly Member[], comment = ""): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, method = 8, flags = 0, crc } of members) {
    const bytes = Buffer.from(content);
    const packed = method === 8 ? deflateRawSync(bytes) : bytes;
    const head = Buffer.alloc(26);
    head.writeUInt16LE(20, 0);
    head.writeUInt16LE(flags, 2);
    head.writeUInt16LE(method, 4);
    head.writeUInt32LE(crc ?? crc32(bytes), 10);
    head.writeUInt32LE(packed.length, 14);
    head.writeUInt32LE(bytes.length, 18);
    head.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004"), head, Buffer.from(name), packed]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(
      Buffer.concat([Buffer.from("PK\u0001\u0002\u0014\0"), head, place, Buffer.from(name)]),
    );
    locals.push(local);
    offset += local.length;
  }
  const end = Buffer.alloc(18);
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  end.writeUInt16LE(members.length, 4);
  end.writeUInt16LE(members.length, 6);
  end.writeUInt32LE(size, 8);
  end.writeUInt32LE(offset, 12);
  end.writeUInt16LE(comment.length, 16);
  return Buffer.concat([
    ...locals,
    ...directory,
    Buffer.from("PK\u0005\u0006"),
    end,
    Buffer.from(comment),
  ]);
}

export function wheelName(version: string, name = "accel_agent"): string {
  return `${name}-${version}-py3-none-any.whl`;
}

/** The members of a good wheel; `bulk` bytes that do not compress make it as large as that. */
export function wheelMembers(version: string, name = "accel_agent", bulk = 0): readonly Member[] {
  const info = `${name}-${version}.dist-info`;
  const noise = Buffer.alloc(bulk);
  for (let at = 0, x = 1; at < bulk; at++) noise[at] = x = (x * 75 + 74) % 65_537;
  return [
    { name: `${name}/__init__.py`, content: "" },
    { name: `${name}/data.bin`, content: noise, method: 0 },
    {
      name: `${info}/METADATA`,
      content: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n\nVersion: 9.9 in the text\n`,
    },
    { name: `${info}/WHEEL`, content: "Wheel-Version: 1.0\n" },
    { name: `${info}/RECORD`, content: "" },
  ];
}

export function wheel(version: string, bulk = 0): Buffer {
  return zip(wheelMembers(version, "accel_agent", bulk));
}

export type FormFile = {
  readonly name: string;
  readonly fileName?: string;
  readonly content: Buffer | string;
};

export const boundary = "----a-boundary-0123456789";

export function form(parts: readonly FormFile[]): Buffer {
  return Buffer.concat([
    ...parts.map(({ name, fileName, content }) =>
      Buffer.concat([
        Buffer.from(
          `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${fileName === undefined ? "" : `; filename="${fileName}"`}\r\n\r\n`,
        ),
        Buffer.from(content),
        Buffer.from("\r\n"),
      ]),
    ),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
}

export const formHeaders = { "content-type": `multipart/form-data; boundary=${boundary}` };

export function basic(username: string, password: string): { readonly authorization: string } {
  return {
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
  };
}
