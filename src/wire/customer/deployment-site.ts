// `/deployment-site/`: where an agent runs, under which name and secret.

import { Type, type Static } from "typebox";
import { Name16Text } from "../parts.ts";
import { body, Id, open, shape, TagsText } from "./shape.ts";

export const DeploymentSite = open(
  {
    id: Id,
    customer: open({ name: Type.String() }),
    name16: Name16Text,
    secret16: Type.Union([Type.String({ pattern: "^[0-9a-f]{32}$" }), Type.Null()], {
      description: "Null to tokens whose role is not `owner`.",
    }),
    deployment_tags: Type.String({
      description: "Comma-separated, in the order in which the tags were given.",
    }),
  },
  {
    title: "DeploymentSite",
    description: "The place where an agent runs. The agent signs in with name16 and secret16.",
    examples: [
      {
        id: 7,
        customer: { name: "Example Ltd" },
        name16: "5f0c9a7be3d21846",
        secret16: "00112233445566778899aabbccddeeff",
        deployment_tags: "production,eu",
      },
    ],
  },
);
export type DeploymentSite = Static<typeof DeploymentSite>;
export const deploymentSiteShape = shape(DeploymentSite);

const readOnly = ["id", "customer", "name16", "secret16", "deployment_tags"];

export const deploymentSiteCreate = body({ tags: Type.Optional(TagsText) }, readOnly, {
  examples: [{ tags: "production,eu" }],
});
export const deploymentSiteUpdate = body({ tags: TagsText }, readOnly, {
  examples: [{ tags: "production,eu" }],
});

export const secretGraceMaxS = 86_400;
export const secretRotate = body(
  {
    grace_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: secretGraceMaxS,
        default: secretGraceMaxS,
        description:
          "How long the previous secret is still accepted. 0 revokes it at once and closes channels.",
      }),
    ),
  },
  [],
  { examples: [{ grace_seconds: 3_600 }] },
);
