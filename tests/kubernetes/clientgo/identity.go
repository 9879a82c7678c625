package main

import (
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// account makes a ServiceAccount, asks for a token and gives a client that shows it.
func (s *scene) account(name string) (*kubernetes.Clientset, *authenticationv1.TokenRequest) {
	accounts := s.typed.CoreV1().ServiceAccounts(s.namespace)
	_, err := accounts.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	s.must(err)
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: pointer(int64(3600))}}
	token, err := accounts.CreateToken(s.ctx, name, asked, metav1.CreateOptions{})
	s.must(err)
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = token.Status.Token
	return kubernetes.NewForConfigOrDie(speakingProtobuf(config)), token
}

func (s *scene) grant(account string, rule rbacv1.PolicyRule) {
	roles, bindings := s.typed.RbacV1().Roles(s.namespace), s.typed.RbacV1().RoleBindings(s.namespace)
	name := metav1.ObjectMeta{Name: "granted"}
	_, err := roles.Create(s.ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	s.must(err)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "granted"}
	_, err = bindings.Create(s.ctx, &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	s.must(err)
}

func identityChecks() []check {
	readMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}
	return []check{
		{"a token of a ServiceAccount speaks for it", func(s *scene) {
			client, token := s.account("robot")
			s.want(token.Status.ExpirationTimestamp.After(metav1.Now().Time), "the token lasts")
			review, err := client.AuthenticationV1().SelfSubjectReviews().Create(s.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			s.must(err)
			s.want(review.Status.UserInfo.Username == "system:serviceaccount:"+s.namespace+":robot", "it is %s", review.Status.UserInfo.Username)
		}},
		{"an account without a role is forbidden, with one allowed", func(s *scene) {
			client, _ := s.account("robot")
			_, err := client.CoreV1().ConfigMaps(s.namespace).List(s.ctx, metav1.ListOptions{})
			s.wantError(apierrors.IsForbidden, err)
			s.grant("robot", readMaps)
			s.until("the role counts", func() bool {
				_, err := client.CoreV1().ConfigMaps(s.namespace).List(s.ctx, metav1.ListOptions{})
				return err == nil
			})
			_, err = client.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, s.configMap("a", nil), metav1.CreateOptions{})
			s.wantError(apierrors.IsForbidden, err)
		}},
		{"a wrong token is unauthorized", func(s *scene) {
			config := rest.AnonymousClientConfig(s.config)
			config.BearerToken = "wrong"
			_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(s.namespace).List(s.ctx, metav1.ListOptions{})
			s.wantError(apierrors.IsUnauthorized, err)
		}},
		{"a client rereads a token from its file", func(s *scene) {
			_, token := s.account("robot")
			file, err := os.CreateTemp("", "token-")
			s.must(err)
			s.afterwards(func() { _ = os.Remove(file.Name()) })
			_, err = file.WriteString(token.Status.Token)
			s.must(err)
			s.must(file.Close())
			config := rest.AnonymousClientConfig(s.config)
			config.BearerTokenFile = file.Name()
			_, err = kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(s.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			s.must(err)
		}},
		{"a TokenReview knows a good token and a bad one", func(s *scene) {
			_, token := s.account("robot")
			reviews := s.typed.AuthenticationV1().TokenReviews()
			good, err := reviews.Create(s.ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}, metav1.CreateOptions{})
			s.must(err)
			s.want(good.Status.Authenticated && good.Status.User.Username == "system:serviceaccount:"+s.namespace+":robot", "the token is known")
			bad, err := reviews.Create(s.ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "bad"}}, metav1.CreateOptions{})
			s.must(err)
			s.want(!bad.Status.Authenticated, "a bad token is not")
		}},
		{"a SubjectAccessReview answers for somebody else", func(s *scene) {
			s.account("robot")
			s.grant("robot", readMaps)
			ask := func(verb string) bool {
				spec := authorizationv1.SubjectAccessReviewSpec{
					User:               "system:serviceaccount:" + s.namespace + ":robot",
					ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: verb, Resource: "configmaps"},
				}
				review, err := s.typed.AuthorizationV1().SubjectAccessReviews().Create(s.ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
				s.must(err)
				return review.Status.Allowed
			}
			s.until("get is allowed", func() bool { return ask("get") })
			s.want(!ask("delete"), "delete is not allowed")
		}},
		{"an account asks what it may do", func(s *scene) {
			client, _ := s.account("robot")
			s.grant("robot", readMaps)
			s.until("it may list", func() bool {
				attributes := &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: "list", Resource: "configmaps"}
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
				got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(s.ctx, review, metav1.CreateOptions{})
				s.must(err)
				return got.Status.Allowed
			})
			asked := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: s.namespace}}
			rules, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(s.ctx, asked, metav1.CreateOptions{})
			s.must(err)
			found := false
			for _, rule := range rules.Status.ResourceRules {
				found = found || (len(rule.Resources) == 1 && rule.Resources[0] == "configmaps" && len(rule.Verbs) == 3)
			}
			s.want(found && !rules.Status.Incomplete, "its rules name configmaps: %+v", rules.Status)
		}},
		{"an administrator impersonates a user", func(s *scene) {
			config := rest.CopyConfig(s.config)
			config.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"testers"}}
			client := kubernetes.NewForConfigOrDie(config)
			review, err := client.AuthenticationV1().SelfSubjectReviews().Create(s.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			s.must(err)
			s.want(review.Status.UserInfo.Username == "jane", "the request is jane's")
			_, err = client.CoreV1().Secrets(s.namespace).List(s.ctx, metav1.ListOptions{})
			s.wantError(apierrors.IsForbidden, err)
		}},
	}
}
