// Gives a deployment site a new secret. It is shown once; the old one is good for a while, or for nothing more.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DeploymentSite } from "../../wire/customer/deployment-site.ts";
import { at, send } from "../api.ts";
import { useDoing } from "../doing.ts";
import { Choice, Confirm, RefusalNote, Secret } from "./pieces.tsx";

const graces = [
  ["86400", "for a day"],
  ["3600", "for an hour"],
  ["0", "no longer: its hosts are shut out now"],
] as const;

type Grace = (typeof graces)[number][0];

export function SiteSecret({
  id,
  name,
}: {
  readonly id: number;
  readonly name: string;
}): JSX.Element {
  const [grace, setGrace] = useState<Grace>("86400");
  const [made, setMade] = useState<DeploymentSite>();
  const doing = useDoing();
  const rotate = (): void => {
    void doing.run(async () => {
      setMade(
        await send<DeploymentSite>("POST", at`/deployment-site/${id}/rotate-secret/`, {
          grace_seconds: Number(grace),
        }),
      );
    });
  };
  return (
    <>
      <h3>New secret</h3>
      <p class="quiet">
        Hosts that are connected learn it within a second, others when they sign in while the
        present one is good. A host that is too late joins again with a code, and so does every host
        if the present one ends now:{" "}
        <code>accel-agent join --central {location.origin} --replace</code>
      </p>
      <div class="row">
        <Choice
          label={`The present secret of ${name} is good`}
          value={grace}
          options={graces}
          onChange={setGrace}
        />
        <Confirm
          question={
            grace === "0"
              ? `Give ${name} a new secret, and shut out all its hosts until each joins again?`
              : `Give ${name} a new secret?`
          }
          doIt="Make a new secret"
          label={`Make a new secret for ${name}`}
          disabled={doing.isBusy}
          onYes={rotate}
        >
          Make a new secret
        </Confirm>
      </div>
      {made?.secret16 !== undefined && made.secret16 !== null && (
        <Secret label={`secret16 of ${made.name16}`} text={made.secret16} />
      )}
      <RefusalNote failure={doing.failure} />
    </>
  );
}
