/** Explore: the overview, or what the address names: a resource, a class or a property. */
import { useEffect, useState } from "preact/hooks";
import { loadVocabulary } from "../../api/vocabulary";
import { place } from "../../app/router";
import { ClassPage, PropertyPage } from "./kinds";
import { Overview } from "./overview";
import { ResourcePage } from "./resource";

export default function ExplorePage() {
  const { parameters } = place.value;
  const [isReady, setReady] = useState(false);
  useEffect(() => { void loadVocabulary().finally(() => setReady(true)); }, []);
  const [resource, ofClass, property] = [parameters.get("iri"), parameters.get("class"), parameters.get("property")];
  if (resource) return <ResourcePage key={resource} node={resource} />;
  if (ofClass) return <ClassPage key={ofClass} node={ofClass} />;
  if (property) return <PropertyPage key={property} node={property} />;
  return <Overview isReady={isReady} />;
}
