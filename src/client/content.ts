// Calls about what a domain serves: devlove files, viewset versions, imports, and clears (clears.ts).

import { clearCalls, type ClearClient } from "./clears.ts";
import {
  devloveFileShape,
  devloveVerdictShape,
  type DevloveFile,
  type DevloveVerdict,
} from "../wire/customer/devlove-file.ts";
import {
  importProgressShape,
  importStartedShape,
  viewsetVersionShape,
  type ImportProgress,
  type ViewsetVersion,
} from "../wire/customer/viewset.ts";
import { viewsetChangesShape, type ViewsetChanges } from "../wire/customer/viewset-changes.ts";
import { devloveSchemaId } from "../core/serving/devlove.ts";
import { arrayOf, type CallOptions, type ApiCalls } from "./transport.ts";

export type ImportSource = {
  readonly domain: string;
  readonly deploymentSiteId: number;
  readonly viewset: string;
};

export type ActivateHow = {
  readonly require?: "each" | "all";
  readonly deadline_s?: number;
  readonly waitS?: number;
};

export type ContentClient = ClearClient & {
  /** `content` is the document as a text of schema `devlove/1`. */
  validateDevlove(content: string, options?: CallOptions): Promise<DevloveVerdict>;
  postDevlove(
    domain: string,
    viewset: string,
    content: string,
    options?: CallOptions,
  ): Promise<DevloveFile>;
  devloves(domain: string, viewset: string): Promise<readonly DevloveFile[]>;
  devlove(domain: string, viewset: string, id: number): Promise<DevloveFile>;
  putDevlove(domain: string, viewset: string, id: number, content: string): Promise<DevloveFile>;
  importViewset(target: ImportSource, options?: CallOptions): Promise<void>;
  importProgress(target: ImportSource): Promise<ImportProgress>;
  viewsets(domain: string): Promise<readonly ViewsetVersion[]>;
  viewset(domain: string, id: number): Promise<ViewsetVersion>;
  /** What activating a version would change, against another one or the active one. */
  viewsetChanges(domain: string, viewsetId: number, from?: number): Promise<ViewsetChanges>;
  /** `require: "all"`: on all connected instances or on none. `waitS`: the seconds to wait for the outcome. */
  activate(domain: string, viewsetId: number, how?: ActivateHow): Promise<ViewsetVersion>;
};

export function contentClient({ call }: Pick<ApiCalls, "call">): ContentClient {
  return { ...devloveCalls({ call }), ...viewsetCalls({ call }), ...clearCalls({ call }) };
}

type DevloveCalls = Pick<
  ContentClient,
  "validateDevlove" | "postDevlove" | "devloves" | "devlove" | "putDevlove"
>;

function devloveCalls({ call }: Pick<ApiCalls, "call">): DevloveCalls {
  const schema = devloveSchemaId;
  const path = (domain: string, viewset: string): string =>
    `/${encodeURIComponent(domain)}/devlove/${encodeURIComponent(viewset)}/`;
  return {
    validateDevlove: async (content, options) =>
      (
        await call("POST", "/devlove/validate/", devloveVerdictShape.decode, {
          body: { schema, content },
          ...options,
        })
      ).value,
    postDevlove: async (domain, viewset, content, options) =>
      (
        await call("POST", path(domain, viewset), devloveFileShape.decode, {
          body: { schema, content },
          ...options,
        })
      ).value,
    devloves: async (domain, viewset) =>
      (await call("GET", path(domain, viewset), arrayOf(devloveFileShape))).value,
    devlove: async (domain, viewset, id) =>
      (await call("GET", `${path(domain, viewset)}${id}/`, devloveFileShape.decode)).value,
    putDevlove: async (domain, viewset, id, content) =>
      (
        await call("PUT", `${path(domain, viewset)}${id}/`, devloveFileShape.decode, {
          body: { schema, content },
        })
      ).value,
  };
}

type ViewsetCalls = Pick<
  ContentClient,
  "importViewset" | "importProgress" | "viewsets" | "viewset" | "viewsetChanges" | "activate"
>;

function viewsetCalls({ call }: Pick<ApiCalls, "call">): ViewsetCalls {
  const { decode } = viewsetVersionShape;
  const versions = (domain: string): string => `/active-viewset/${encodeURIComponent(domain)}/`;
  const importPath = ({ domain, deploymentSiteId, viewset }: ImportSource): string =>
    `/import-viewset/${encodeURIComponent(domain)}/${deploymentSiteId}/${encodeURIComponent(viewset)}/`;
  return {
    importViewset: async (target, options) =>
      void (await call("POST", importPath(target), importStartedShape.decode, {
        body: {},
        ...options,
      })),
    importProgress: async (target) =>
      (await call("GET", importPath(target), importProgressShape.decode)).value,
    viewsets: async (domain) =>
      (await call("GET", versions(domain), arrayOf(viewsetVersionShape))).value,
    viewset: async (domain, id) => (await call("GET", `${versions(domain)}${id}/`, decode)).value,
    viewsetChanges: async (domain, id, from) => {
      const changesPath = `${versions(domain)}${id}/changes/`;
      const { decode: decodeChanges } = viewsetChangesShape;
      return (await call("GET", changesPath, decodeChanges, { query: { from } })).value;
    },
    activate: async (domain, id, { waitS, ...how } = {}) => {
      const wait = waitS === undefined ? "" : `?wait=${waitS}`;
      return (await call("PUT", `${versions(domain)}${id}/${wait}`, decode, { body: how })).value;
    },
  };
}
