// A server of S3 in this process, on a port of its own: objects in memory, signatures checked. It does what central asks for (PUT, GET with a range, HEAD, DELETE,
// uploads in parts) and refuses everything else, as it refuses what S3 would.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { signatureFault, type SigningKey } from "./s3-signature.ts";

export const s3Key: SigningKey = { id: "AKIDEXAMPLE", secret: "s3-secret", region: "eu-test-1" };

/** S3 takes no smaller part but the last. */
const partBytesMin = 5 * 2 ** 20;

type Answer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: string | Uint8Array;
};
type Upload = { readonly key: string; readonly parts: Map<number, Buffer> };

export type S3Server = AsyncDisposable & {
  readonly port: number;
  /** By key. */
  readonly objects: Map<string, Buffer>;
  /** Uploads in parts that were neither completed nor aborted. */
  readonly uploads: ReadonlyMap<string, Upload>;
  /** Method and key of each request that was answered, in order. */
  readonly asked: string[];
  /** What is kept of an object that is put. */
  alter: (key: string, object: Buffer) => Buffer;
};

export async function startS3Server(
  bucket: string,
  options: { readonly key?: SigningKey; readonly mayDelete?: boolean } = {},
): Promise<S3Server> {
  const { key: signingKey = s3Key, mayDelete = true } = options;
  const objects = new Map<string, Buffer>();
  const uploads = new Map<string, Upload>();
  const asked: string[] = [];
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const body = await buffer(request);
    const fault = signatureFault(request, body, signingKey);
    if (fault !== undefined) return refused(fault === "BadDigest" ? 400 : 403, fault);
    const url = new URL(request.url ?? "", "http://s3");
    const [, named = "", ...rest] = url.pathname.split("/");
    if (named !== bucket) return refused(404, "NoSuchBucket");
    const key = decodeURIComponent(rest.join("/"));
    asked.push(`${request.method} ${key}${url.search.replace(/uploadId=\w+/, "uploadId=…")}`);
    const query = url.searchParams;
    const uploadId = query.get("uploadId");
    if (request.method === "POST" && query.has("uploads")) return begun(uploads, key);
    if (uploadId !== null) {
      const upload = uploads.get(uploadId);
      if (upload?.key !== key) return refused(404, "NoSuchUpload");
      const partNo = Number(query.get("partNumber"));
      switch (request.method) {
        case "PUT":
          upload.parts.set(partNo, body);
          return { status: 200, headers: { etag: etagOf(body) } };
        case "DELETE":
          uploads.delete(uploadId);
          return { status: 204 };
        case "POST": {
          const whole = completed(upload, body.toString());
          if (typeof whole === "string") return refused(400, whole);
          uploads.delete(uploadId);
          objects.set(key, whole);
          return xml(
            200,
            `<CompleteMultipartUploadResult><ETag>"x-2"</ETag></CompleteMultipartUploadResult>`,
          );
        }
        default:
          return refused(405, "MethodNotAllowed");
      }
    }
    const object = objects.get(key);
    switch (request.method) {
      case "PUT":
        objects.set(key, s3.alter(key, body));
        return { status: 200, headers: { etag: etagOf(body) } };
      case "DELETE":
        if (!mayDelete) return refused(403, "AccessDenied");
        objects.delete(key);
        return { status: 204 };
      case "HEAD":
        return object === undefined
          ? { status: 404 }
          : { status: 200, headers: { "content-length": object.byteLength } };
      case "GET":
        return object === undefined ? refused(404, "NoSuchKey") : ranged(request, object);
      default:
        return refused(405, "MethodNotAllowed");
    }
  };
  const server = createServer((request, response) => {
    void answer(request).then(
      (made) => send(response, request.method === "HEAD", made),
      () => response.destroy(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  const s3: S3Server = {
    port,
    objects,
    uploads,
    asked,
    alter: (_, object) => object,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return s3;
}

function send(response: ServerResponse, isHead: boolean, { status, headers, body }: Answer): void {
  const bytes = Buffer.from(body ?? "");
  response.writeHead(status, {
    "content-length": bytes.byteLength,
    "x-amz-request-id": "test",
    ...headers,
  });
  response.end(isHead ? undefined : bytes);
}

const xml = (status: number, text: string): Answer => ({
  status,
  headers: { "content-type": "application/xml" },
  body: `<?xml version="1.0" encoding="UTF-8"?>\n${text}`,
});

const refused = (status: number, code: string): Answer =>
  xml(status, `<Error><Code>${code}</Code><Message>told by the test</Message></Error>`);

const etagOf = (bytes: Uint8Array): string => `"${createHash("md5").update(bytes).digest("hex")}"`;

function begun(uploads: Map<string, Upload>, key: string): Answer {
  const id = randomBytes(8).toString("hex");
  uploads.set(id, { key, parts: new Map() });
  return xml(
    200,
    `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
  );
}

/** The object; or what S3 answers where the list of parts is not that of what was sent. */
function completed({ parts }: Upload, list: string): Buffer | string {
  const told = [...list.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = ""]) => ({
    no: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
    etag: /<ETag>(.*?)</.exec(part)?.[1]?.replaceAll("&quot;", '"'),
  }));
  if (told.length === 0) return "MalformedXML";
  const bytes: Buffer[] = [];
  for (const [at, { no, etag }] of told.entries()) {
    const part = parts.get(no);
    if (part === undefined || etagOf(part) !== etag) return "InvalidPart";
    if (no !== at + 1) return "InvalidPartOrder";
    if (part.byteLength < partBytesMin && at < told.length - 1) return "EntityTooSmall";
    bytes.push(part);
  }
  return Buffer.concat(bytes);
}

function ranged({ headers }: IncomingMessage, object: Buffer): Answer {
  const range = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "");
  if (range === null) return { status: 200, body: object };
  const [first, last] = [Number(range[1]), Math.min(Number(range[2]), object.byteLength - 1)];
  if (first > last) return refused(416, "InvalidRange");
  return {
    status: 206,
    headers: { "content-range": `bytes ${first}-${last}/${object.byteLength}` },
    body: object.subarray(first, last + 1),
  };
}
