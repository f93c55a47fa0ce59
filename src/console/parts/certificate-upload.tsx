// Takes a certificate with its private key, pasted or from files. Files are read in the browser; the key of a file is never shown.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { CertificateStored } from "../../wire/customer/certificate.ts";
import { Refusal, send } from "../api.ts";
import { useDoing } from "../doing.ts";
import { pemParts } from "../pem.ts";
import { visibleText } from "../visible-text.ts";
import { Button, Note, RefusalNote, Time } from "./pieces.tsx";
import { PemField, type PemText } from "./pem-field.tsx";

const nothing: PemText = { text: "", file: undefined };

export function CertificateUpload({
  path,
  name,
  onDone,
}: {
  readonly path: string;
  readonly name: string;
  readonly onDone: () => void;
}): JSX.Element {
  const [chain, setChain] = useState(nothing);
  const [key, setKey] = useState(nothing);
  const [stored, setStored] = useState<CertificateStored>();
  const doing = useDoing();
  /** A file or a text may hold both. */
  const take = (given: PemText): void => {
    const { certificates, privateKey } = pemParts(given.text);
    setStored(undefined);
    if (privateKey === "") {
      setChain(given);
      return;
    }
    if (certificates !== "") setChain({ text: certificates, file: given.file });
    setKey({ text: privateKey, file: given.file ?? "what was pasted above" });
  };
  const upload = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      if (chain.text.trim() === "") throw new Refusal(0, "there is no certificate yet");
      if (key.text.trim() === "") throw new Refusal(0, "there is no private key yet");
      const body = { certificate: chain.text, private_key: key.text };
      setStored(await send<CertificateStored>("POST", path, body));
      setChain(nothing);
      setKey(nothing);
      onDone();
    });
  };
  return (
    <form onSubmit={upload}>
      <PemField
        label={`Certificate chain for ${name} (PEM)`}
        value={chain}
        onGiven={take}
        hint="The certificate of the site first, then those that lead from it towards a root. A file that has the private key as well will do."
      />
      <PemField
        label={`Private key for ${name} (PEM, not encrypted)`}
        value={key}
        onGiven={setKey}
        isSecret
      />
      <Button kind="main" submits disabled={doing.isBusy}>
        Upload the certificate
      </Button>
      {stored !== undefined && (
        <Note tone="good">
          The certificate for {stored.names.map(visibleText).join(", ")} was stored; it is good
          until <Time at={stored.not_after} />.
        </Note>
      )}
      <RefusalNote failure={doing.failure} />
    </form>
  );
}
