// `/download/accel_pack/`, `/upload/accel_pack…`: versions of the accelerator package, uploaded by users whom the operator lets publish.

import { customerApiPrefix } from "../../wire/customer/shape.ts";
import { gives, givesMedia, makes } from "../../wire/customer/operation.ts";
import {
  packageInfoShape,
  packageLatestShape,
  packageStoredShape,
  type PackageInfo,
  type PackageLatest,
  type PackageStored,
} from "../../wire/customer/package.ts";
import { parsePackageVersion, type PackageVersion } from "../../core/package-version.ts";
import {
  conflict,
  created,
  invalid,
  notFound,
  ok,
  problem,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forPublishers, forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { formBoundary, FormFault, FormStream } from "./http/form-stream.ts";
import type { Packages, StagedPackage } from "../store/objects/object-store.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import {
  addPackage,
  findPackage,
  newestPackage,
  type PackageRow,
} from "../store/packages/packages.ts";
import type { Work } from "../store/engine/work.ts";

type Deps = Pick<ResourceDeps, "ports" | "settings">;

const downloadPath = "/download/accel_pack/";
const uploadPath = "/upload/accel_pack/:version/";
const partName = "file";

export function packageEndpoints(deps: Deps): readonly Endpoint[] {
  return [
    ...downloadEndpoints(deps),
    forPublishers({
      method: "POST",
      path: uploadPath,
      id: "uploadPackage",
      summary: "Upload a wheel as a version of the accelerator package",
      gives: makes(packageStoredShape),
      refuses: [403, 409, 413],
      takesStream: "file",
      handle: async (call) => upload(call, deps),
    }),
  ];
}

function downloadEndpoints({ ports, settings }: Deps): readonly Endpoint[] {
  const { baseUrl, bootstrapperUrl, versions, images } = settings.packages;
  return [
    forUsers({
      method: "GET",
      path: downloadPath,
      id: "getNewestPackage",
      needs: { role: "read", scope: "domain" },
      summary: "Read which version of the accelerator package is the newest, and where it is",
      gives: gives(packageLatestShape),
      refuses: [404],
      handle: async ({ read }) => {
        const newest = await read(async (work) => newestPackage(work.tx));
        if (newest === undefined) return notFound("version of the accelerator package yet");
        const { version, file, size, sha256 } = newest;
        const place = `${encodeURIComponent(version)}/${encodeURIComponent(file)}`;
        const download_url = `${baseUrl}${customerApiPrefix}${downloadPath}${place}`;
        return ok({ version, file, size, sha256, download_url } satisfies PackageLatest);
      },
    }),
    forUsers({
      method: "GET",
      path: `${downloadPath}:version/:file/`,
      id: "downloadPackage",
      needs: { role: "read", scope: "domain" },
      summary: "Download a version of the accelerator package",
      gives: givesMedia("application/octet-stream"),
      refuses: [404],
      handle: async ({ param, read }) => {
        const key = parsePackageVersion(param("version"))?.key;
        const found = await read(async (work) => named(work, key));
        return found === undefined || found.file !== param("file")
          ? notFound(`package ${JSON.stringify(`${param("version")}/${param("file")}`)}`)
          : fileAnswer(found, ports.packages);
      },
    }),
    forUsers({
      method: "GET",
      path: "/upload/accel_pack_v2/",
      id: "getPackageVersions",
      needs: { role: "read", scope: "domain" },
      summary: "Read the versions and images that belong together",
      gives: gives(packageInfoShape),
      handle: async ({ read }) => {
        const newest = await read(async (work) => newestPackage(work.tx));
        return ok({
          ...(bootstrapperUrl !== undefined && { bootstrapper_download_url: bootstrapperUrl }),
          versions: { ...versions, ...(newest !== undefined && { accel_pack: newest.version }) },
          ...(images !== undefined && { images: { ...images } }),
        } satisfies PackageInfo);
      },
    }),
  ];
}

async function named(work: Work, key: string | undefined): Promise<PackageRow | undefined> {
  return key === undefined ? undefined : findPackage(work, key);
}

function fileAnswer(row: PackageRow, packages: Pick<Packages, "open">): Answer {
  const { file, size, sha256 } = row;
  return {
    kind: "file",
    status: 200,
    size,
    open: async () => packages.open(row),
    headers: {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${file}"`,
      etag: `"${sha256}"`,
      // RFC 9530: whoever downloads the file can compare it.
      "repr-digest": `sha-256=:${Buffer.from(sha256, "hex").toString("base64")}:`,
    },
  };
}

type Uploaded = EndpointCall<unknown, Actor>;

async function upload(call: Uploaded, { ports, settings }: Deps): Promise<Answer> {
  const version = parsePackageVersion(call.param("version"));
  if (version === undefined)
    return invalid([{ path: "version", message: "is no version of a Python package (PEP 440)" }]);
  const boundary = formBoundary(call.incoming.type);
  if (boundary === undefined)
    return problem(415, "the body must be multipart/form-data with one part named file");
  try {
    const received = await receive(call, boundary, ports, settings.packages.sizeMax);
    if ("kind" in received) return received;
    await using staged = received.staged;
    return await keep(call, version, received.file, staged);
  } catch (error) {
    if (!(error instanceof FormFault)) throw error;
    return invalid([{ path: "", message: `the form ${error.message}` }]);
  }
}

type Received = { readonly staged: StagedPackage; readonly file: string };

/** Receives the form. All parts are read: a file that is followed by something else is not kept. */
async function receive(
  { incoming }: Uploaded,
  boundary: string,
  ports: Deps["ports"],
  sizeMax: number,
): Promise<Received | ProblemAnswer> {
  await using stack = new AsyncDisposableStack();
  let received: Received | undefined;
  for await (const { name, fileName, content } of new FormStream(
    incoming.bytes,
    boundary,
  ).parts()) {
    if (name !== partName)
      return invalid([{ path: `/${name.slice(0, 100)}`, message: "unknown part; only file" }]);
    if (received !== undefined) return invalid([{ path: "/file", message: "is given twice" }]);
    if (fileName === undefined) return invalid([{ path: "/file", message: "has no file name" }]);
    const staged = await ports.packages.stage(content, sizeMax);
    if (staged === "too-large")
      return problem(413, `the file is larger than ${sizeMax} bytes (package.size_max)`);
    received = { staged: stack.use(staged), file: fileName };
  }
  if (received === undefined) return invalid([{ path: "/file", message: "is missing" }]);
  stack.move();
  return received;
}

async function keep(
  { actor, change }: Uploaded,
  version: PackageVersion,
  file: string,
  staged: StagedPackage,
): Promise<Answer> {
  const checked = await staged.check(file);
  if (!checked.ok) return invalid([{ path: "/file", message: checked.reason }]);
  if (checked.version.key !== version.key) {
    const message = `is of version ${checked.version.text}, the path says ${version.text}`;
    return invalid([{ path: "/file", message }]);
  }
  const { size, sha256 } = staged;
  const kept = await staged.keep();
  const facts = { version: checked.version.text, file, size, sha256 };
  return change(async (work) => {
    const row = await addPackage(work, {
      ...facts,
      version_key: version.key,
      ...kept,
      uploaded_by_user_id: actor.userId,
    });
    if (row === "exists") return conflict(`version ${version.text} is there already`);
    await staged.release(work.tx);
    return created({ ...facts, when_created: row.when_created } satisfies PackageStored);
  }, facts);
}
