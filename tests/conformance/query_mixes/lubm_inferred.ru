# What the ontology of LUBM adds to the data, as far as the queries ask for it.
PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>

INSERT { ?x a ?above } WHERE {
  VALUES (?class ?above) {
    (ub:UndergraduateStudent ub:Student) (ub:GraduateStudent ub:Student)
    (ub:FullProfessor ub:Professor) (ub:AssociateProfessor ub:Professor) (ub:AssistantProfessor ub:Professor)
    (ub:Lecturer ub:Faculty) (ub:GraduateCourse ub:Course)
  }
  ?x a ?class
} ;
INSERT { ?x a ub:Faculty } WHERE { ?x a ub:Professor } ;
INSERT { ?x a ub:Person } WHERE { ?x a ?class FILTER (?class IN (ub:Student, ub:Faculty)) } ;
INSERT { ?x a ub:Chair ; ub:worksFor ?y } WHERE { ?x ub:headOf ?y } ;
INSERT { ?x ub:memberOf ?y } WHERE { ?x ub:worksFor ?y } ;
INSERT { ?x ub:subOrganizationOf ?z } WHERE { ?x ub:subOrganizationOf/ub:subOrganizationOf ?z } ;
INSERT { ?y ub:hasAlumnus ?x } WHERE {
  ?x ub:undergraduateDegreeFrom|ub:mastersDegreeFrom|ub:doctoralDegreeFrom ?y
}
