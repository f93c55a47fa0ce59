// `/download/accel_pack/`, `/upload/accel_pack/…`: versions of the accelerator package.

import { Type, type Static } from "typebox";
import { Sha256Text, Timestamp } from "../parts.ts";
import { open, shape } from "./shape.ts";

const facts = {
  /** The version by PEP 440, in its normal form. */
  version: Type.String({ minLength: 1 }),
  /** Name of the wheel. */
  file: Type.String({ minLength: 1 }),
  /** Bytes. */
  size: Type.Integer({ minimum: 1 }),
  sha256: Sha256Text,
};

const exampleFacts = {
  version: "1.4.0",
  file: "accel_agent-1.4.0-py3-none-any.whl",
  size: 48_123_904,
  sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
};

export const PackageLatest = open(
  { ...facts, download_url: Type.String() },
  {
    title: "PackageLatest",
    examples: [
      {
        ...exampleFacts,
        download_url:
          "https://central.example.com/presentation-api/v1/download/accel_pack/1.4.0/accel_agent-1.4.0-py3-none-any.whl",
      },
    ],
  },
);
export type PackageLatest = Static<typeof PackageLatest>;
export const packageLatestShape = shape(PackageLatest);

export const PackageStored = open(
  { ...facts, when_created: Timestamp },
  {
    title: "PackageStored",
    examples: [{ ...exampleFacts, when_created: "2026-11-22T12:00:00.000Z" }],
  },
);
export type PackageStored = Static<typeof PackageStored>;
export const packageStoredShape = shape(PackageStored);

/** Keys that are not set at central are absent. */
export const PackageInfo = open(
  {
    bootstrapper_download_url: Type.Optional(Type.String()),
    versions: Type.Record(Type.String(), Type.String()),
    images: Type.Optional(Type.Record(Type.String(), Type.String())),
  },
  {
    title: "PackageInfo",
    description: "Keys that are not set at central are absent.",
    examples: [
      {
        bootstrapper_download_url: "https://downloads.example.com/bootstrapper.sh",
        versions: { bootstrapper: "1.2.0", base_python: "3.13.1", accel_pack: "1.4.0" },
        images: { base_python: "images.example.com/base-python:3.13.1" },
      },
      { versions: {} },
    ],
  },
);
export type PackageInfo = Static<typeof PackageInfo>;
export const packageInfoShape = shape(PackageInfo);
