// `/{domain}/devlove/…`: devlove files of viewset versions; `/devlove/validate/`: the validator without a domain.

import { isDeepStrictEqual } from "node:util";
import { gives, lists, makes } from "../../wire/customer/operation.ts";
import { codeOf, messageOf } from "../../core/faults.ts";
import {
  devloveFileWrite,
  devloveValidate,
  type DevloveVerdict,
  devloveFileShape,
  devloveVerdictShape,
} from "../../wire/customer/devlove-file.ts";
import { devlovePresets, devloveWarnings } from "../../wire/devlove-warnings.ts";
import { devloveBytesMax } from "../../core/serving/devlove.ts";
import { activationTriesMax, storeManifest } from "./activation.ts";
import {
  conflict,
  created,
  invalid,
  list,
  notFound,
  ok,
  problem,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { idOf, isProblem, mainDomain, shownId, viewsetName } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { DomainRow } from "../store/content/domains.ts";
import {
  createDevloveFile,
  findDevloveFile,
  listDevloveFiles,
  replaceDevloveFile,
} from "../store/content/devlove-files.ts";
import { activateVersion, readBasis, versionNamed } from "../store/content/viewsets.ts";
import { subDomainNames } from "../store/journal/site-state.ts";
import type { Work } from "../store/engine/work.ts";

const path = "/:domain_name/devlove/:viewset_name/";

/**
 * The most bytes of a body. In JSON a byte takes up to six (`\u0001`); the rest is the other field and the
 * syntax.
 */
const bodyBytesMax = 6 * devloveBytesMax + 2 ** 16;

export function devloveEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path: "/devlove/validate/",
      id: "validateDevlove",
      needs: { role: "read", scope: "domain" },
      summary: "Validate a devlove without storing it",
      gives: gives(devloveVerdictShape),
      refuses: [503],
      body: devloveValidate,
      bodyBytesMax,
      handle: async (call) => unlessBusy(async () => judge(call, deps)),
    }),
    forUsers({
      method: "POST",
      path,
      id: "createDevlove",
      needs: { role: "write", scope: "domain" },
      summary:
        "Store a devlove file; a new viewset name makes a version with the active one's views",
      gives: makes(devloveFileShape),
      refuses: [404, 503],
      body: devloveFileWrite,
      bodyBytesMax,
      handle: async (call) => unlessBusy(async () => createFile(call, deps)),
    }),
    forUsers({
      method: "GET",
      path,
      id: "listDevloves",
      needs: { role: "read", scope: "domain" },
      summary: "List the devlove files of a viewset version",
      gives: lists(devloveFileShape),
      refuses: [404],
      handle: async ({ actor, param, read }) => {
        const found = await read(async (work) => findVersion(work, actor, param));
        if (isProblem(found)) return found;
        return list(async (range) =>
          read(async (work) => listDevloveFiles(work, found.viewsetId, range)),
        );
      },
    }),
    forUsers({
      method: "GET",
      path: `${path}:devlove_id/`,
      id: "getDevlove",
      needs: { role: "read", scope: "domain" },
      summary: "Read a devlove file",
      gives: gives(devloveFileShape),
      refuses: [404],
      handle: readFile,
    }),
    forUsers({
      method: "PUT",
      path: `${path}:devlove_id/`,
      id: "updateDevlove",
      needs: { role: "write", scope: "domain" },
      summary: "Replace a devlove file; on the active version the new content is activated",
      gives: gives(devloveFileShape),
      refuses: [404, 409, 503],
      body: devloveFileWrite,
      bodyBytesMax,
      identity: { field: "id", param: "devlove_id" },
      handle: async (call) => unlessBusy(async () => replaceFile(call, deps)),
    }),
  ];
}

async function readFile({ actor, param, read }: EndpointCall<unknown, Actor>): Promise<Answer> {
  return read(async (work) => {
    const found = await findVersion(work, actor, param);
    if (isProblem(found)) return found;
    const file = await findDevloveFile(work, found.viewsetId, idOf(param("devlove_id")));
    return file === undefined ? notFound(`devlove ${shownId(param("devlove_id"))}`) : ok(file);
  });
}

type Version = { readonly domain: DomainRow; readonly viewsetId: number };

async function findVersion(
  work: Work,
  actor: Actor,
  param: EndpointCall<unknown, Actor>["param"],
): Promise<Version | ProblemAnswer> {
  const domain = await mainDomain(work, actor, param("domain_name"));
  if (isProblem(domain)) return domain;
  const viewsetId = await versionNamed(work, domain.id, param("viewset_name"));
  return viewsetId === undefined
    ? notFound(`viewset ${JSON.stringify(param("viewset_name"))} of ${domain.name}`)
    : { domain, viewsetId };
}

type Write = { readonly schema: string; readonly content: string };

/** The hosts that a document of the domain may name, as they are linked now. */
export type OwnNames = { readonly mainDomain: string; readonly subDomains: readonly string[] };

export async function ownNames(work: Work, domain: DomainRow): Promise<OwnNames> {
  return { mainDomain: domain.name, subDomains: await subDomainNames(work.tx, domain.id) };
}

/**
 * Returns what is wrong with a document for these names, or undefined. It must be called outside of
 * transactions, because it may take seconds. Throws JUDGING_BUSY.
 */
export async function devloveFault(
  { ports, settings, now }: ResourceDeps,
  { schema, content }: Write,
  names: OwnNames,
): Promise<ProblemAnswer | undefined> {
  const context = { ...settings.devlove, ...names, nowMs: now().getTime() };
  const verdict = await ports.judge.devlove({ schema, content, context });
  return verdict.ok ? undefined : invalid(copyErrors(verdict.errors));
}

const retryAfterS = "2";

export async function unlessBusy(action: () => Promise<Answer>): Promise<Answer> {
  try {
    return await action();
  } catch (error) {
    if (codeOf(error) !== "JUDGING_BUSY") throw error;
    const headers = { "retry-after": retryAfterS };
    return problem(503, `the devlove cannot be judged now: ${messageOf(error)}`, { headers });
  }
}

function copyErrors(
  errors: readonly {
    readonly path: string;
    readonly message: string;
    readonly allowed?: readonly string[];
    readonly did_you_mean?: string;
  }[],
) {
  return errors.map(({ allowed, ...error }) =>
    allowed === undefined ? error : { ...error, allowed: [...allowed] },
  );
}

async function judge(
  { body, change }: EndpointCall<Write, Actor>,
  deps: ResourceDeps,
): Promise<Answer> {
  const { schema, content } = body;
  const context = {
    ...deps.settings.devlove,
    mainDomain: null,
    subDomains: [],
    nowMs: deps.now().getTime(),
  };
  const verdict = await deps.ports.judge.devlove({ schema, content, context });
  const warnings = verdict.ok ? devloveWarnings(verdict.devlove) : [];
  const presets = verdict.ok ? devlovePresets(verdict.devlove) : [];
  const answer: DevloveVerdict = verdict.ok
    ? {
        status: "ok",
        payload: {
          "devlove-valid": "True",
          ...(presets.length > 0 && {
            presets: presets.map(({ path, rules }) => ({ path, rules: [...rules] })),
          }),
          ...(warnings.length > 0 && { warnings: [...warnings] }),
        },
      }
    : {
        status: "error",
        payload: { "devlove-valid": "False", errors: copyErrors(verdict.errors) },
      };
  return change(async () => ok(answer));
}

/** Stores a file. The document is judged before the transaction, and again if the names changed meanwhile. */
async function createFile(call: EndpointCall<Write, Actor>, deps: ResourceDeps): Promise<Answer> {
  const { actor, body, param, read, change } = call;
  const name = viewsetName(param("viewset_name"));
  if (typeof name !== "string") return name;
  for (let tried = 0; tried < activationTriesMax; tried++) {
    const names = await read(async (work) => {
      const domain = await mainDomain(work, actor, param("domain_name"));
      return isProblem(domain) ? domain : ownNames(work, domain);
    });
    if (isProblem(names)) return names;
    const fault = await devloveFault(deps, body, names);
    let isOvertaken = false;
    const answer = await change(async (work) => {
      isOvertaken = false;
      const domain = await mainDomain(work, actor, param("domain_name"));
      if (isProblem(domain)) return domain;
      isOvertaken = !isDeepStrictEqual(names, await ownNames(work, domain));
      if (isOvertaken) return overtaken;
      if (fault !== undefined) return fault;
      const made = await createDevloveFile(work, domain.id, name, body);
      return made.outcome === "created"
        ? created(made.file)
        : conflict(`viewset ${name} has a devlove of schema ${body.schema} already: ${made.id}`);
    });
    if (!isOvertaken) return answer;
  }
  return overtaken;
}

const overtaken = conflict("the domain changed meanwhile: try again");

/**
 * Replaces a file. The manifest is composed before the transaction, and again if the version changed
 * meanwhile.
 */
async function replaceFile(call: EndpointCall<Write, Actor>, deps: ResourceDeps): Promise<Answer> {
  const { actor, body, param, read, change } = call;
  const id = idOf(param("devlove_id"));
  for (let tried = 0; tried < activationTriesMax; tried++) {
    const basis = await read(async (work) => {
      const found = await findVersion(work, actor, param);
      if (isProblem(found)) return found;
      if ((await findDevloveFile(work, found.viewsetId, id)) === undefined)
        return notFound(`devlove ${shownId(param("devlove_id"))}`);
      const names = await ownNames(work, found.domain);
      const stored = await readBasis(work.tx, found.domain.id, found.viewsetId);
      return stored && { names, stored };
    });
    if (basis === undefined) return notFound(`devlove ${shownId(param("devlove_id"))}`);
    if (isProblem(basis)) return basis;
    const fault = await devloveFault(deps, body, basis.names);
    if (fault !== undefined) return fault;
    const edited = { ...basis.stored, ...body };
    const manifest = await storeManifest(deps.ports.blobs, edited);
    let isOvertaken = false;
    const answer = await change(async (work) => {
      isOvertaken = false;
      const found = await findVersion(work, actor, param);
      if (isProblem(found)) return found;
      if ((await replaceDevloveFile(work, found.viewsetId, id, body)) === "taken")
        return conflict(`viewset ${param("viewset_name")} has a devlove of this schema already`);
      if (found.domain.activeViewsetId === found.viewsetId)
        isOvertaken =
          (await activateVersion(work, found.domain.id, edited, manifest)) === "changed";
      return isOvertaken
        ? conflict("the version changed meanwhile: try again")
        : ok({ id, ...body });
    });
    if (!isOvertaken) return answer;
  }
  return conflict("the version changed meanwhile: try again");
}
