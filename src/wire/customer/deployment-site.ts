// `/deployment-site/`: where an agent runs, under which name and secret.

import { Type, type Static } from "typebox";
import { Name16Text } from "../parts.ts";
import { body, Id, open, shape, TagsText } from "./shape.ts";

export const DeploymentSite = open({
  id: Id,
  customer: open({ name: Type.String() }),
  name16: Name16Text,
  secret16: Type.String({ pattern: "^[0-9a-f]{32}$" }),
  /** Comma-separated, in the order in which they were given. */
  deployment_tags: Type.String(),
});
export type DeploymentSite = Static<typeof DeploymentSite>;
export const deploymentSiteShape = shape(DeploymentSite);

const readOnly = ["id", "customer", "name16", "secret16", "deployment_tags"];

export const deploymentSiteCreate = body({ tags: Type.Optional(TagsText) }, readOnly);
export const deploymentSiteUpdate = body({ tags: TagsText }, readOnly);

export const secretGraceMaxS = 86_400;
/** How long the secret before is still accepted; 0 revokes it at once and closes channels. */
export const secretRotate = body({
  grace_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: secretGraceMaxS })),
});
